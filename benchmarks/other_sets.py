"""ISBOR and its peers on small public sets.

All come with scikit-learn, skordinal or statsmodels, or are made by rule: no files, no network. A continuous
target is cut by rank into five classes, and of a long table 2,000 random rows are taken. Ten random splits,
70 % of the rows to train. Each fit is stored at once: a run that was interrupted goes on where it was.

ISBOR's price of a function, its rule of choice and its lapses were chosen on other splits of the same sets.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import datasets
from sklearn.model_selection import GridSearchCV
from skordinal.datasets import load_era, load_esl, load_lev

from benchmarks.models import svor
from benchmarks.protocol import MODELS, DataSet, Model, run_splits, training_rows
from benchmarks.report import print_machine, progress
from benchmarks.results import (
    MEASURES,
    STORE,
    Group,
    Paired,
    Store,
    mean_of,
    paired,
    print_groups,
    print_paired,
)
from isbor import ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import cut_by_rank

PROTOCOL = "other"
N_SPLITS = 10
N_CLASSES = 5
MOST_ROWS = 2000
SVOR_ROWS = 500  # of a set; above, tuning it takes more than a few seconds a split

Table: TypeAlias = tuple[FloatArray, IntArray]

OURS = MODELS["isbor"]
KINDS = {
    "isbor-rbf": MODELS["isbor-rbf"],
    "isbor-mixed": Model('ISBOR(basis="mixed")', lambda *_: ISBOR(basis="mixed"), peer=False),
}
PEERS = {
    "logistic": MODELS["logistic"],
    "trees": MODELS["trees"],
    "svor": Model("SVOR (skordinal), tuned", lambda *_: _tuned_svor()),
}
ALL = {"isbor": OURS, **KINDS, **PEERS}

NOTES = f"""\
Mean ± standard deviation over the splits; seconds of fit, the median, worth comparing only if the machine did
nothing else. SVOR is tuned on each training part by cross-validation, which its seconds include, and left out
on sets above {SVOR_ROWS} rows.
"""
PAIRED_NOTE = """\
ISBOR() less the other on common splits: mean ± its standard error; a win or loss exceeds one standard error.
The better of its kinds is the one of lower mean, set by set and measure by measure: known only afterwards.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.other_sets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, choices, default in (("--sets", SETS, SETS), ("--models", ALL, ALL), ("--redo", ALL, ())):
        text = "models to fit again, of: " if name == "--redo" else "of: "
        parser.add_argument(
            name,
            nargs="+",
            choices=choices,
            default=tuple(default),
            metavar="NAME",
            help=text + ", ".join(choices),
        )
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="number of random splits")
    parser.add_argument("--label", default="", help="version of ISBOR that the results are of")
    parser.add_argument("--store", type=Path, default=STORE, help="directory of the results")
    parser.add_argument("--report", action="store_true", help="only print what the store has")
    options = parser.parse_args()

    store = Store(options.store)
    if not options.report:
        again = {(ALL[key].name, ALL[key].label(options.label)) for key in options.redo}
        store.drop(
            lambda key: (
                key.protocol == PROTOCOL and key.set in options.sets and (key.model, key.label) in again
            )
        )
        run(store, options.sets, options.models, options.splits, options.label)
    report(store, options.sets, options.label)
    if not options.report:
        print_machine()


def run(store: Store, sets: Sequence[str], keys: Sequence[str], n_splits: int, label: str) -> None:
    """Fit what the store does not have."""
    for name in sets:
        try:
            data = load(name)
        except ImportError as error:
            progress(f"{name} is left out: {error}")
            continue
        models = [ALL[key] for key in keys if key != "svor" or len(data) <= SVOR_ROWS]
        n_train = training_rows("70/30", data)
        run_splits(store, PROTOCOL, data, models, n_train=n_train, n_splits=n_splits, label=label)


def report(store: Store, sets: Sequence[str], label: str) -> None:
    """Print the results, and ISBOR() beside the better of its kinds and beside its peers."""
    groups: dict[str, dict[str, Group]] = {
        name: {
            key: group
            for key, model in ALL.items()
            if (group := store.group(PROTOCOL, name, model.name, model.label(label)))
        }
        for name in sets
    }
    rows = [(name, ALL[key].name, group) for name, found in groups.items() for key, group in found.items()]
    print_groups("Other sets", rows)
    print(NOTES)

    comparisons: list[tuple[str, str, Mapping[str, Paired | None]]] = []
    for name, found in groups.items():
        kinds = [found[key] for key in KINDS if key in found]
        if "isbor" in found and kinds:
            comparisons.append((name, "the better of its kinds", against_best(found["isbor"], kinds)))
    for name, found in groups.items():
        for key in PEERS:
            if "isbor" in found and key in found:
                differences = {measure: paired(found["isbor"], found[key], measure) for measure in MEASURES}
                comparisons.append((name, PEERS[key].name, differences))
    if comparisons:
        print_paired("ISBOR() against the others", comparisons)
        print(PAIRED_NOTE)


def against_best(ours: Group, rivals: Sequence[Group]) -> dict[str, Paired | None]:
    """Compare with the rival of the lowest mean, by measure."""
    best = {measure: min(rivals, key=lambda rival: mean_of(rival, measure)) for measure in MEASURES}
    return {measure: paired(ours, rival, measure) for measure, rival in best.items()}


def load(name: str) -> DataSet:
    """Return a set, of at most `MOST_ROWS` rows."""
    X, y = SETS[name]()
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        X, y = X[rows], y[rows]
    return DataSet(name, X, X, y)


def _tuned_svor() -> Any:
    grid = {"svor__C": [1.0, 10.0, 100.0], "svor__gamma": ["auto", 0.02, 0.1, 0.5]}
    return GridSearchCV(svor(C=1.0, gamma=1.0), grid, cv=3, scoring="neg_mean_absolute_error")


def _cut(X: ArrayLike, target: ArrayLike) -> Table:
    return np.asarray(X, dtype=np.float64), cut_by_rank(target, N_CLASSES)


def _sklearn_classes(read: Callable[..., Any]) -> Table:
    X, y = read(return_X_y=True)
    return X, y


def _skordinal(read: Callable[..., Any]) -> Table:
    found = read()
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)


def _esl() -> Table:
    """Return the set without its extreme grades, of 2 and 4 rows, which join their neighbours."""
    X, y = _skordinal(load_esl)
    return X, np.clip(y, 1, 7)


def _statsmodels(name: str, target: str, *, leave_out: Sequence[str] = (), classes: bool = False) -> Table:
    """Return a table of statsmodels with one of its columns for target: classes, or to be cut."""
    frame = _statsmodels_frame(name)
    X = frame.drop(columns=[target, *leave_out]).to_numpy(dtype=np.float64)
    y = frame[target].to_numpy()
    return (X, y.astype(np.intp)) if classes else _cut(X, y)


def _randhie() -> Table:
    """Return self-rated health, from excellent (0) to poor (3), by medical care and insurance."""
    frame = _statsmodels_frame("randhie")
    health = ["hlthg", "hlthf", "hlthp"]
    y = frame[health].to_numpy() @ np.arange(1, 4)
    return frame.drop(columns=health).to_numpy(dtype=np.float64), y.astype(np.intp)


def _star98() -> Table:
    """Return the share of pupils above the median in mathematics, by properties of the school district."""
    frame = _statsmodels_frame("star98")
    counts = ["NABOVE", "NBELOW"]
    return _cut(frame.drop(columns=counts), frame["NABOVE"] / frame[counts].sum(axis=1))


def _statsmodels_frame(name: str) -> Any:
    """Return a table of statsmodels, which is no requirement of the benchmarks."""
    from statsmodels import datasets as tables

    return getattr(tables, name).load_pandas().data


SETS: dict[str, Callable[[], Table]] = {
    "iris": partial(_sklearn_classes, datasets.load_iris),
    "wine": partial(_sklearn_classes, datasets.load_wine),
    "breast_cancer": partial(_sklearn_classes, datasets.load_breast_cancer),
    "diabetes": lambda: _cut(*datasets.load_diabetes(return_X_y=True)),
    "friedman1": lambda: _cut(*datasets.make_friedman1(400, noise=1.0, random_state=0)),
    "friedman2": lambda: _cut(*datasets.make_friedman2(400, noise=125.0, random_state=0)),
    "friedman3": lambda: _cut(*datasets.make_friedman3(400, noise=0.1, random_state=0)),
    "era": partial(_skordinal, load_era),
    "esl": _esl,
    "lev": partial(_skordinal, load_lev),
    "anes96": partial(_statsmodels, "anes96", "PID", leave_out=["popul"], classes=True),
    "engel": partial(_statsmodels, "engel", "foodexp"),
    "fair": partial(_statsmodels, "fair", "rate_marriage", classes=True),
    "grunfeld": partial(_statsmodels, "grunfeld", "invest", leave_out=["firm"]),
    "macrodata": partial(_statsmodels, "macrodata", "unemp"),
    "randhie": _randhie,
    "star98": _star98,
}


if __name__ == "__main__":
    main()
