"""Whether bands around class probabilities contain the true ones as often as they promise: simulations.

Tables are drawn from four known scores of two features (`benchmarks.simulated`). A band of coverage 90 %
should contain nine of ten true probabilities between 0.05 and 0.95 on fresh rows. Beside the models stands an
oracle that knows the form of the score and estimates its five or six parameters: no band can be much
narrower.

Every fit is recorded at once in `build/coverage.jsonl`; the same command goes on with a stopped run. Once the
source has changed, fits are made anew.
"""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin

from benchmarks.report import number, print_machine, print_table, progress
from benchmarks.simulated import TRUTHS, draw, oracle_bands, share_covered
from benchmarks.versions.running import source_digest
from isbor import GPOR, ISBOR, SBOR
from isbor._core.types import FloatArray

COVERAGES = (0.5, 0.9)
SIZES = (200, 800, 3000)
MODELS: dict[str, Callable[[], ClassifierMixin]] = {
    "ISBOR()": lambda: ISBOR(n_jobs=1),
    'ISBOR(basis="rbf")': lambda: ISBOR(basis="rbf", n_jobs=1),
    'ISBOR(basis="mixed")': lambda: ISBOR(basis="mixed", n_jobs=1),
    "SBOR()": lambda: SBOR(n_jobs=1),
    "GPOR()": lambda: GPOR(n_jobs=1),
}
FILE = Path(__file__).parents[1] / "build" / "coverage.jsonl"
ORACLE = "oracle"
Job: TypeAlias = tuple[str, str, int, int]  # model, truth, rows, repetition


def run(job: Job) -> list[tuple[float, float]]:
    """Return the share of probabilities in their bands, and the mean width of these, for each coverage."""
    name, truth, n, repetition = job
    sample = draw(truth, n, repetition)
    if name == ORACLE:
        return [share_covered(sample.truth, *oracle_bands(truth, sample, c)) for c in COVERAGES]
    model = MODELS[name]().fit(sample.X, sample.y)
    return [share_covered(sample.truth, *model.predict_proba_interval(sample.test, c)) for c in COVERAGES]


def known(digest: str) -> dict[Job, Any]:
    """Return the results of the present source."""
    lines = FILE.read_text("utf-8").splitlines() if FILE.exists() else []
    records = [json.loads(line) for line in lines]
    return {tuple(record["job"]): record["found"] for record in records if record["digest"] == digest}


def complete(jobs: list[Job], n_processes: int) -> dict[Job, Any]:
    """Return the results of all jobs; run those that are not known side by side, and record each."""
    digest = source_digest()
    results = known(digest)
    missing = [job for job in jobs if job not in results]
    FILE.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(n_processes) as pool, FILE.open("a", encoding="utf-8") as file:
        futures = {pool.submit(run, job): job for job in missing}
        for done, future in enumerate(as_completed(futures), 1):
            job = futures[future]
            results[job] = future.result()
            file.write(json.dumps({"job": job, "found": results[job], "digest": digest}) + "\n")
            file.flush()
            progress(f"[{done}/{len(missing)}] {', '.join(map(str, job))}")
    return results


def described(found: FloatArray) -> str:
    """Return coverage of both bands, and the width of the wider one."""
    return f"{number(found[0, 0], 2)} / {number(found[1, 0], 2)} ({number(found[1, 1], 3)})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="rows (200 800 3000)")
    parser.add_argument("--repetitions", type=int, default=20, help="tables drawn for each (20)")
    parser.add_argument("--jobs", type=int, default=2, help="fits side by side (2)")
    options = parser.parse_args()
    names, repetitions = [*options.models, ORACLE], range(options.repetitions)
    results = complete(list(product(names, TRUTHS, options.sizes, repetitions)), options.jobs)
    for n in options.sizes:
        table = []
        for name in names:
            of_truths = [
                np.mean([results[name, truth, n, k] for k in repetitions], axis=0) for truth in TRUTHS
            ]
            table.append([name, *map(described, [*of_truths, np.mean(of_truths, axis=0)])])
        header = ["model", *(truth.title for truth in TRUTHS.values()), "mean"]
        print_table(f"{n:,} rows: coverage of bands of 50 % / 90 % (mean width of the latter)", header, table)
    print_machine()


if __name__ == "__main__":
    main()
