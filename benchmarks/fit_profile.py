"""Where the time of a fit goes, and how near its inner loops are to the rates of the machine.

One fit on one thread; CalHouse needs the files that ISBOR_DATA names. Rates are of blocks of rows and
functions as the fit has them.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import number, print_machine, print_table
from benchmarks.versions.problems import PROBLEMS
from isbor import ISBOR
from isbor._core.parallel import Workers
from isbor.inference.compiled_expansion import Block, add_block, likelihood_terms, new_sums
from isbor.model.compiled_basis import function_values

PARTS = {
    "train": "joint training",
    "add_block": "expansions: likelihood and inner products",
    "mode_of_block": "modes of few rows",
    "gains_of": "gains of proposals",
    "function_values": "values of functions",
    "add_shape_block": "noise and gaps",
    "climb": "ascents",
    "make_moves": "moves in Gram space",
}


def shares(name: str) -> tuple[float, dict[str, float]]:
    """Return the seconds of a fit, and those within each part."""
    rows = next(problem for problem in PROBLEMS if problem.name == name).rows(0)
    model = ISBOR(n_jobs=1)
    model.fit(rows.X[:200], rows.y[:200])  # loads libraries and compiled code
    profile = cProfile.Profile()
    begin = time.perf_counter()
    profile.runcall(model.fit, rows.X, rows.y)
    total = time.perf_counter() - begin
    seconds = dict.fromkeys(PARTS, 0.0)
    for (file, _, function), (_, _, own, *_) in pstats.Stats(profile).stats.items():
        if Path(file).name.startswith("compiled_") and function in seconds:
            seconds[function] += own
    return total, seconds


def best(call: Callable[[], object], count: int = 9) -> float:
    """Return the seconds of the fastest of some calls."""
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def rates(m: int = 160, n: int = 2500, d: int = 8) -> list[list[str]]:
    """Return the rates of an expansion and of function values beside those of NumPy."""
    random = np.random.default_rng(0)
    values, y = random.normal(size=(m, n)), random.integers(0, 5, n)
    block = Block(values, y, np.ones(n), np.ones(n), np.empty((0, n)))
    edge = np.array([-np.inf, -1, 0, 1, 2, np.inf])
    expansion = best(lambda: add_block(block, np.zeros(m), edge, m, False, new_sums(m + 4)))
    likelihood = best(lambda: likelihood_terms(y, values[0], block.noise_scale, block.gap_factors, edge))
    general = best(lambda: values @ (2.0 * values).T)
    symmetric = best(lambda: values @ values.T)
    X, centres = random.normal(size=(n, d)), random.normal(size=(m, d))
    metric = np.where(random.random((m, d)) < 0.3, 0.5, 0.0)
    bumps = best(lambda: function_values(centres, metric, np.zeros(m, np.bool_), np.zeros(m), X))
    exponents = -np.abs(values)
    exponential = best(lambda: np.exp(exponents))
    flops = 2.0 * m * m * n / 1e9
    return [
        ["general product (dgemm), GFLOP/s", number(flops / general, 0)],
        ["symmetric product (dsyrk), counted as a general one", number(flops / symmetric, 0)],
        ["an expansion, likelihood and all, counted alike", number(flops / expansion, 0)],
        ["the likelihood of a row and its derivatives, ns", number(1e9 * likelihood / n, 0)],
        ["np.exp, ns", number(1e9 * exponential / (m * n), 2)],
        ["a function of two or three of eight columns, ns a value", number(1e9 * bumps / (m * n), 2)],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_profile", description=__doc__)
    names = [problem.name for problem in PROBLEMS]
    parser.add_argument("--problem", default="calhouse", choices=names, metavar="NAME")
    options = parser.parse_args()
    with Workers(1):  # one thread for BLAS, too
        total, parts = shares(options.problem)
        found = rates()
    rest = total - sum(parts.values())
    table = [
        [PARTS[part], number(own, 2), f"{100 * own / total:.0f} %"]
        for part, own in sorted(parts.items(), key=lambda item: -item[1])
    ]
    table.append(["everything else", number(rest, 2), f"{100 * rest / total:.0f} %"])
    title = f"{options.problem}: {number(total, 1)} s on one thread"
    print_table(title, ["within", "seconds", "share"], table)
    print_table("Rates on one thread", ["of", "rate"], found)
    print_machine()


if __name__ == "__main__":
    main()
