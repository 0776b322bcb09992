"""What is lost if only a range of labels is known, and what fits to such labels lose in other ways.

Rows are drawn from the four truths of `benchmarks.simulated`, with six classes and two features more that say
nothing. A share of the labels is then coarsened at random, in one of two ways: "neighbours", two neighbouring
labels of which one is right, or "at least 2", all labels from the third up merged into one. Beside intervals
fitted by `IntervalLabelClassifier`, with weights from held-out rows (its default) or from all rows (cv=None),
stand the same model with all labels (the bound), with rows of known labels only, with the middle of the
interval as label, and with all classes of the interval, equally weighted.

Log loss and mean absolute error are expected values on 1,000 new rows, whose class probabilities are known.
Differences from the fit to all labels are paired: every method has the same rows.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning

from benchmarks.report import number, print_machine, print_table, progress
from benchmarks.simulated import TRUTHS, share_covered
from isbor import GPOR, ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.estimators.linear import OrderedProbit
from isbor.meta import IntervalLabelClassifier
from isbor.meta.conformal import median_levels
from isbor.meta.table import ordered_proba

CLASSES = np.arange(6)
N_TEST = 1000
MERGED = 2  # "at least 2"
MODELS: dict[str, Callable[[], Any]] = {
    "OrderedProbit()": lambda: OrderedProbit(n_jobs=1, classes=CLASSES),
    'ISBOR(effort="fast")': lambda: ISBOR(effort="fast", n_jobs=1, classes=CLASSES),
    "ISBOR()": lambda: ISBOR(n_jobs=1, classes=CLASSES),
    "GPOR()": lambda: GPOR(n_jobs=1, classes=CLASSES),
    "random forest": lambda: RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
    "random forest of full depth": lambda: RandomForestClassifier(100, random_state=0),
}
BOUND = "all labels"


def draw(name: str, n: int, seed: int) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """Draw rows with labels, and test rows with their class probabilities."""
    truth, random = TRUTHS[name], np.random.default_rng([seed, n, *map(ord, name)])
    many = np.random.default_rng(12345).normal(size=(200_000, 3))
    response = truth.score(many[:, :2]) + truth.noise(many[:, :2]) * many[:, 2]
    cuts = np.quantile(response, [0.1, 0.3, 0.5, 0.7, 0.88])
    X, test = random.normal(size=(n, 4)), random.normal(size=(N_TEST, 4))
    y = np.digitize(truth.score(X[:, :2]) + truth.noise(X[:, :2]) * random.normal(size=n), cuts)
    below = ndtr((cuts - truth.score(test[:, :2])[:, None]) / truth.noise(test[:, :2])[:, None])
    return X, y, test, np.diff(below, axis=1, prepend=0.0, append=1.0)


def neighbours(y: IntArray, share: float, random: np.random.Generator) -> IntArray:
    """Return pairs: of a share of the labels, the label and a neighbour, where there is one on this side."""
    lower = y - random.integers(2, size=len(y))
    chosen = (random.random(len(y)) < share) & (lower >= 0) & (lower < len(CLASSES) - 1)
    return np.column_stack([np.where(chosen, lower, y), np.where(chosen, lower + 1, y)])


def at_least(y: IntArray, share: float, random: np.random.Generator) -> IntArray:
    """Return pairs: about a share of all rows is known to have at least a label that 70 % have."""
    chosen = (random.random(len(y)) < share / 0.7) & (y >= MERGED)
    return np.column_stack([np.where(chosen, MERGED, y), np.where(chosen, CLASSES[-1], y)])


SCHEMES: dict[str, Callable[..., IntArray]] = {"neighbours": neighbours, f"at least {MERGED}": at_least}


def fits(model: Any, X: FloatArray, y: IntArray, pairs: IntArray) -> dict[str, Callable[[], Any]]:
    """Return how each method fits a model."""
    known = pairs[:, 0] == pairs[:, 1]
    row, code = np.nonzero((pairs[:, :1] <= CLASSES) & (pairs[:, 1:] >= CLASSES))
    equal = 1.0 / (pairs[:, 1] - pairs[:, 0] + 1)[row]
    meta = IntervalLabelClassifier(model, classes=CLASSES)
    return {
        BOUND: lambda: clone(model).fit(X, y),
        "intervals": lambda: clone(meta).fit(X, pairs),
        "intervals, cv=None": lambda: clone(meta).set_params(cv=None).fit(X, pairs),
        "known labels only": lambda: clone(model).fit(X[known], y[known]),
        "middle": lambda: clone(model).fit(X, pairs.sum(axis=1) // 2),
        "all classes alike": lambda: clone(model).fit(X[row], code, sample_weight=equal),
    }


def losses(model: Any, test: FloatArray, truth: FloatArray) -> tuple[float, float]:
    """Return the expected log loss and absolute error."""
    proba = np.maximum(ordered_proba(model, test, CLASSES), 1e-6)
    proba /= proba.sum(axis=1, keepdims=True)
    error = np.abs(CLASSES - median_levels(proba)[:, None])
    return float(-(truth * np.log(proba)).sum() / len(test)), float((truth * error).sum() / len(test))


def measure(make: Callable[[], Any], name: str, n: int, seed: int, scheme: str, share: float) -> FloatArray:
    """Return log loss, absolute error, CPU seconds and rounds of each method, (methods, 4)."""
    X, y, test, truth = draw(name, n, seed)
    pairs = SCHEMES[scheme](y, share, np.random.default_rng([seed, n]))
    found = []
    for fit in fits(make(), X, y, pairs).values():
        start = time.process_time()
        model = fit()
        seconds = time.process_time() - start
        found.append([*losses(model, test, truth), seconds, getattr(model, "n_iter_", 0)])
    return np.array(found)


def difference(values: FloatArray) -> str:
    """Return a mean difference and its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{'+' if values.mean() > 0 else ''}{number(values.mean(), 3)} ± {number(error, 3)}"


def print_losses(title: str, n: int, options: argparse.Namespace) -> None:
    """Print what each method loses, over all truths and seeds."""
    columns = list(product(SCHEMES, options.shares))
    seeds = range(options.seed, options.seed + options.splits)
    found = np.array(
        [
            [measure(MODELS[title], name, n, seed, *column) for name in options.truths for seed in seeds]
            for column in columns
        ]
    )  # (columns, tables, methods, 4)
    methods = list(fits(MODELS[title](), *np.zeros((2, 0)), np.zeros((0, 2), int)))
    rows = []
    for m, method in enumerate(methods):
        of_method, bound = found[:, :, m], found[:, :, 0]
        entries = [f"{number(of.mean(), 3)}" for of in of_method[:, :, 0]]
        if method != BOUND:
            entries = [difference(a - b) for a, b in zip(of_method[:, :, 0], bound[:, :, 0], strict=True)]
        mae = [number(of.mean(), 3) for of in of_method[:, :, 1]]
        rows.append([method, *(f"{e} ({a})" for e, a in zip(entries, mae, strict=True))])
        if method.startswith("intervals"):
            ratio = of_method[:, :, 2].sum() / bound[:, :, 2].sum()
            progress(f"{title}, {n} rows, {method}: {ratio:.1f} times the CPU seconds of a fit")
            rounds = number(of_method[:, :, 3].mean(), 1)
            rows[-1][0] += f" [{rounds} rounds]"
    header = ["", *(f"{scheme}, {share:.0%}" for scheme, share in columns)]
    print_table(f"{title}, {n} rows: log loss (MAE)", header, rows)


def print_coverage(n: int, options: argparse.Namespace) -> None:
    """Print how often bands of 90 % have the true probabilities, with all labels and with intervals."""
    rows = []
    for scheme, share in product(SCHEMES, options.shares):
        found = []
        for name, seed in product(options.truths, range(options.seed, options.seed + options.splits)):
            X, y, test, truth = draw(name, n, seed)
            pairs = SCHEMES[scheme](y, share, np.random.default_rng([seed, n]))
            make = MODELS['ISBOR(effort="fast")']
            both = make().fit(X, y), IntervalLabelClassifier(make(), cv=None).fit(X, pairs).estimator_
            found.append([share_covered(truth, *model.predict_proba_interval(test, 0.9)) for model in both])
        coverage, width = np.mean(found, axis=0).T
        rows.append(
            [
                f"{scheme}, {share:.0%}",
                *(f"{number(c, 2)} ({number(w, 3)})" for c, w in zip(coverage, width, strict=True)),
            ]
        )
    print_table(
        f'ISBOR(effort="fast"), {n} rows: coverage of bands of 90 % (width)', ["", BOUND, "intervals"], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interval_labels", description=__doc__)
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=["OrderedProbit()", 'ISBOR(effort="fast")']
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 1000], help="training rows")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.3, 0.6], help="of coarsened labels")
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=list(TRUTHS))
    parser.add_argument("--splits", type=int, default=2, help="tables of each truth")
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    parser.add_argument("--bands", action="store_true", help="coverage of bands as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for n, title in product(options.sizes, options.models):
        print_losses(title, n, options)
    for n in options.sizes if options.bands else ():
        print_coverage(n, options)
    print_machine()


if __name__ == "__main__":
    main()
