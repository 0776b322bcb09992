"""Small public sets that come with scikit-learn, skordinal or statsmodels, or are made by rule: no files.

A continuous target is cut by rank into five classes, and of a long table 2,000 random rows are taken.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import datasets

from isbor._core.types import FloatArray, IntArray
from isbor.datasets import cut_by_rank

__all__ = ["SETS", "load_set"]

Table: TypeAlias = tuple[FloatArray, IntArray]

_N_CLASSES = 5
_MOST_ROWS = 2000


def load_set(name: str) -> Table:
    """Return a set, of at most 2,000 rows."""
    X, y = SETS[name]()
    if len(y) > _MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), _MOST_ROWS, replace=False)
        X, y = X[rows], y[rows]
    return X, y


def _cut(X: ArrayLike, target: ArrayLike) -> Table:
    return np.asarray(X, dtype=np.float64), cut_by_rank(target, _N_CLASSES)


def _skordinal(name: str) -> Table:
    from skordinal import datasets as tables

    found = getattr(tables, f"load_{name}")()
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)


def _esl() -> Table:
    """Return the set without its extreme grades, of 2 and 4 rows, which join their neighbours."""
    X, y = _skordinal("esl")
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
    from statsmodels import datasets as tables

    return getattr(tables, name).load_pandas().data


SETS: dict[str, Callable[[], Table]] = {
    "iris": partial(datasets.load_iris, return_X_y=True),
    "wine": partial(datasets.load_wine, return_X_y=True),
    "breast_cancer": partial(datasets.load_breast_cancer, return_X_y=True),
    "diabetes": lambda: _cut(*datasets.load_diabetes(return_X_y=True)),
    "friedman1": lambda: _cut(*datasets.make_friedman1(400, noise=1.0, random_state=0)),
    "friedman2": lambda: _cut(*datasets.make_friedman2(400, noise=125.0, random_state=0)),
    "friedman3": lambda: _cut(*datasets.make_friedman3(400, noise=0.1, random_state=0)),
    "era": partial(_skordinal, "era"),
    "esl": _esl,
    "lev": partial(_skordinal, "lev"),
    "anes96": partial(_statsmodels, "anes96", "PID", leave_out=["popul"], classes=True),
    "engel": partial(_statsmodels, "engel", "foodexp"),
    "fair": partial(_statsmodels, "fair", "rate_marriage", classes=True),
    "grunfeld": partial(_statsmodels, "grunfeld", "invest", leave_out=["firm"]),
    "macrodata": partial(_statsmodels, "macrodata", "unemp"),
    "randhie": _randhie,
    "star98": _star98,
}
