"""Whether prediction sets contain the true label as often as they promise, and how large they are.

Random splits of public and simulated tables: 600 rows to fit, 400 to calibrate, up to 1,000 to test (of small
tables, shares of 3 : 2 : 3). Sets are those of `PredictionSetClassifier`: "split" for all rows together and
for each class, and "cross" in five folds of the rows to fit and to calibrate. Beside them stand the naive
sets, which trust `predict_proba`: the fewest neighbouring classes, the median among them, with enough
probability.

Splits of a table are exchangeable draws, so that coverage is guaranteed as a mean over them, and its standard
error is that of this mean. Many splits of a linear model make it small; `ISBOR(effort="fast")` has fewer.
"""

import argparse
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from benchmarks.more_sets import MORE_SETS, load_more
from benchmarks.report import number, print_machine, print_table, progress
from benchmarks.simulated import TRUTHS, draw
from isbor import ISBOR
from isbor._core.types import BoolArray, FloatArray, IntArray
from isbor.datasets import load_benchmark
from isbor.estimators.linear import OrderedProbit
from isbor.meta import PredictionSetClassifier
from isbor.meta.conformal import median_levels
from isbor.meta.table import ordered_proba

COVERAGES = (0.8, 0.9, 0.95)
PAPER_SETS = ("bs", "swd", "marketing", "bank", "computer", "calhouse", "census")
N_FIT, N_CALIBRATE, N_TEST = 600, 400, 1000
MODELS: dict[str, tuple[Callable[[], ClassifierMixin], int, bool]] = {  # splits, whether folds are affordable
    "OrderedProbit()": (lambda: OrderedProbit(missing="indicator", n_jobs=1), 40, True),
    'ISBOR(effort="fast")': (lambda: ISBOR(effort="fast", missing="indicator", n_jobs=1), 10, False),
}


def load(name: str) -> tuple[FloatArray, IntArray]:
    """Return a set of at least 400 rows, with labels 0, 1, …; or 10,000 rows of a simulated truth."""
    if name in TRUTHS:
        sample = draw(name, 10_000, 0)
        return sample.X, sample.y
    X, y = load_more(name) if name in MORE_SETS else load_benchmark(name, return_X_y=True, as_frame=False)
    return X, np.unique(y, return_inverse=True)[1]


def coverage_and_size(sets: BoolArray, y: IntArray, n_levels: int) -> FloatArray:
    """Return the coverage of all rows, the mean size, and the coverage of each class (NaN without rows)."""
    inside = sets[np.arange(len(y)), y].astype(float)
    counts = np.bincount(y, minlength=n_levels)
    with np.errstate(invalid="ignore"):
        by_class = np.bincount(y, inside, n_levels) / counts
    return np.concatenate([[inside.mean(), sets.sum(axis=1).mean()], by_class])


def naive_sets(proba: FloatArray, coverage: float) -> BoolArray:
    """Return for each row the fewest neighbouring classes around the median with this probability."""
    n_levels, median = proba.shape[1], median_levels(proba)
    sets = np.ones(proba.shape, dtype=bool)
    greatest = np.full((len(proba), 2), [-float(n_levels), 0.0])  # fewest classes, then most probability
    for low, high in combinations_with_replacement(range(n_levels), 2):
        mass, size = proba[:, low : high + 1].sum(axis=1), high + 1 - low
        better = (-size > greatest[:, 0]) | ((-size == greatest[:, 0]) & (mass > greatest[:, 1]))
        chosen = (low <= median) & (median <= high) & (mass >= coverage) & better
        greatest[chosen, 0], greatest[chosen, 1] = -size, mass[chosen]
        sets[chosen] = (np.arange(n_levels) >= low) & (np.arange(n_levels) <= high)
    return sets


def of_split(
    model: ClassifierMixin, X: FloatArray, y: IntArray, seed: int, *, cross: bool
) -> dict[str, FloatArray]:
    """Return what `coverage_and_size` says, for each kind of set and coverage."""
    order = np.random.default_rng(seed).permutation(len(y))
    share = min(1.0, len(y) / (N_FIT + N_CALIBRATE + N_FIT))
    n_fit, n_calibrate = int(share * N_FIT), int(share * N_CALIBRATE)
    fit, calibrate, test, _ = np.split(
        order, np.cumsum([n_fit, n_calibrate, min(N_TEST, len(y) - n_fit - n_calibrate)])
    )
    model.fit(X[fit], y[fit])
    classes: Any = np.arange(y.max() + 1)

    def prefit(conditional: Any) -> PredictionSetClassifier:
        sets = PredictionSetClassifier(
            model, method="prefit", conditional=conditional, classes=classes.tolist()
        )
        return sets.fit(X[calibrate], y[calibrate])

    kinds = {"split": prefit(None), "by class": prefit("class")}
    if cross:
        both = np.concatenate([fit, calibrate])
        folds = PredictionSetClassifier(model, method="cross", classes=classes.tolist(), random_state=seed)
        kinds["cross"] = folds.fit(X[both], y[both])
    found = {
        kind: [coverage_and_size(sets.predict_set(X[test], c), y[test], len(classes)) for c in COVERAGES]
        for kind, sets in kinds.items()
    }
    proba = ordered_proba(model, X[test], classes)
    found["naive"] = [coverage_and_size(naive_sets(proba, c), y[test], len(classes)) for c in COVERAGES]
    return {kind: np.array(values) for kind, values in found.items()}


def described(found: FloatArray) -> str:
    """Return mean coverage and, in brackets, mean size, for each coverage; (splits, coverages, …) in."""
    coverage, size = found[:, :, 0].mean(axis=0), found[:, :, 1].mean(axis=0)
    return f"{' / '.join(number(c, 3) for c in coverage)} ({' / '.join(number(s, 1) for s in size)})"


def lowest(found: FloatArray) -> str:
    """Return the mean coverage of the class where it is lowest, for each coverage."""
    return " / ".join(number(c, 3) for c in np.nanmean(found[:, :, 2:], axis=0).min(axis=1))


def short(found: FloatArray) -> tuple[int, int]:
    """Return how many mean coverages are below their promise by two standard errors, and their number."""
    n_found = np.count_nonzero(~np.isnan(found), axis=0)
    mean, error = np.nanmean(found, axis=0), np.nanstd(found, axis=0, ddof=1) / np.sqrt(n_found)
    below = mean < np.array(COVERAGES).reshape(-1, *[1] * (mean.ndim - 1)) - 2 * error
    return int(below.sum()), below.size


def main() -> None:
    sets = [*PAPER_SETS, *MORE_SETS, *TRUTHS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction_sets", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--sets", nargs="+", default=sets, choices=sets, metavar="NAME")
    parser.add_argument("--splits", type=int, help="splits of each set (40 of OrderedProbit, 10 of ISBOR)")
    parser.add_argument("--seed", type=int, default=0, help="of the first split (0)")
    options = parser.parse_args()
    for name in options.models:
        make, n_splits, cross = MODELS[name]
        n_splits = options.splits or n_splits
        kinds = ["split", *(["cross"] if cross else []), "naive"]
        rows, counts = [], np.zeros((len(kinds) + 1, 2), dtype=int)
        for title in options.sets:
            X, y = load(title)
            seeds = range(options.seed, options.seed + n_splits)
            splits = [of_split(make(), X, y, seed, cross=cross) for seed in seeds]
            found = {kind: np.array([split[kind] for split in splits]) for kind in splits[0]}
            rows.append(
                [
                    title.replace("_", " "),
                    str(y.max() + 1),
                    *(described(found[kind]) for kind in kinds),
                    lowest(found["split"]),
                    f"{lowest(found['by class'])} ({described(found['by class']).rpartition('(')[2]}",
                ]
            )
            counts[:-1] += [short(found[kind][:, :, 0]) for kind in kinds]
            counts[-1] += short(found["by class"][:, :, 2:])
            progress(f"{name}, {title}")
        print_table(
            f"{name}: coverage of sets of 80 % / 90 % / 95 % (mean number of classes in them)",
            ["", "classes", *kinds, "lowest of a class: split", "by class"],
            rows,
        )
        for kind, (n_below, n_all) in zip([*kinds, "by class"], counts, strict=True):
            print(f"- {kind}: {n_below} of {n_all} coverages are below by more than two standard errors")
        print(f"\n{n_splits} splits of each set.\n")
    print_machine()


if __name__ == "__main__":
    main()
