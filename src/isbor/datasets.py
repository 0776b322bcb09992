r"""Data to try the models on: two made by rule, and the seven benchmark sets of the paper.

``make_saddle``
    The paper's synthetic set. With :math:`x` uniform on :math:`[0, 10]^2`,

    .. math:: f(x) = 10\,(x_1 - 5)(x_2 - 5), \qquad
              y = 1 + \#\{j : b_j < f(x) + \varepsilon\}, \quad \varepsilon \sim N(0, \text{noise}^2)

    and the cuts :math:`b` of `SADDLE_THRESHOLDS`. The paper prints 0.5 in place of 5, but its class counts
    come from 5.

``make_balance_scale``
    The UCI Balance Scale set, computed from its rule instead of read from a file.

``load_benchmark``
    The seven sets of Li & de Rijke (2018), read from files or fetched from OpenML.

A benchmark file is a CSV table (gzipped when its name ends in ``.gz``) with one header line. All columns are
numbers, the last one is ``target``, and an empty field is a missing value.
"""

import csv
import gzip
import io
import logging
import os
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from isbor.arrays import FloatArray, IntArray

__all__ = [
    "SADDLE_THRESHOLDS",
    "cut_by_rank",
    "load_benchmark",
    "make_balance_scale",
    "make_saddle",
    "saddle_labels",
]

logger = logging.getLogger(__name__)

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

SADDLE_THRESHOLDS: tuple[float, ...] = (-60.0, -9.0, 15.0, 60.0)
"""Where `make_saddle` cuts its score into five classes."""


# --- Sets made by rule ------------------------------------------------------------------------------------


@overload
def make_saddle(
    n_samples: int = ...,
    *,
    noise: float = ...,
    random_state: RandomState = ...,
    return_score: Literal[False] = ...,
) -> tuple[FloatArray, IntArray]: ...


@overload
def make_saddle(
    n_samples: int = ..., *, noise: float = ..., random_state: RandomState = ..., return_score: Literal[True]
) -> tuple[FloatArray, IntArray, FloatArray]: ...


def make_saddle(
    n_samples: int = 21_000,
    *,
    noise: float = 0.5,
    random_state: RandomState = None,
    return_score: bool = False,
) -> tuple[FloatArray, IntArray] | tuple[FloatArray, IntArray, FloatArray]:
    """Draw the paper's synthetic set: five classes cut from a saddle over a square.

    Parameters
    ----------
    n_samples : int
        Number of rows; the paper has 21 000.
    noise : float
        Standard deviation of what is added to the score before it is cut. At 0.5 the noise-free score
        itself has a mean absolute error of about 0.0072 classes: no model does better on average.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed or source of the draws. A generator is advanced by the call.
    return_score : bool
        Return the noise-free score as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points, uniform on [0, 10]².
    y : ndarray of int of shape (n_samples,)
        Labels 1 to 5.
    score : ndarray of shape (n_samples,)
        Noise-free score; only with ``return_score=True``.

    Examples
    --------
    >>> X, y, score = make_saddle(1000, random_state=0, return_score=True)
    >>> X.shape, y.min(), y.max()
    ((1000, 2), np.int64(1), np.int64(5))
    >>> np.abs(y - saddle_labels(score)).mean() < 0.03  # what the noise alone costs
    np.True_
    """
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; at least 1 is needed.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise is {noise}; a finite standard deviation, zero or more, is needed.")
    rng = _generator(random_state)
    X = rng.uniform(0.0, 10.0, size=(n_samples, 2))
    score = 10.0 * (X[:, 0] - 5.0) * (X[:, 1] - 5.0)
    y = saddle_labels(score + noise * rng.standard_normal(n_samples))
    return (X, y, score) if return_score else (X, y)


def saddle_labels(score: ArrayLike) -> IntArray:
    """Return the labels 1 to 5 that `make_saddle` gives to a score.

    On the noise-free score these are the best predictions there are.

    Parameters
    ----------
    score : array-like of float
        Values of the latent function.

    Returns
    -------
    ndarray of int, of the shape of `score`
        One plus the number of `SADDLE_THRESHOLDS` below each value.

    Examples
    --------
    >>> saddle_labels([-100, -60, 0, 15.1, 250])
    array([1, 1, 3, 4, 5])
    """
    return 1 + np.searchsorted(SADDLE_THRESHOLDS, np.asarray(score, dtype=np.float64), side="left")


def _generator(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    """Take a source of draws as it is, and make one from a seed."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def make_balance_scale() -> tuple[FloatArray, IntArray]:
    """Return the Balance Scale set: which way a loaded scale tips.

    Returns
    -------
    X : ndarray of shape (625, 4)
        Left weight, left distance, right weight and right distance: the grid {1, …, 5}⁴ in lexicographic
        order.
    y : ndarray of int of shape (625,)
        1 where the left side is heavier (288 rows), 2 where the scale balances (49), 3 where the right side
        is heavier (288).

    Examples
    --------
    >>> X, y = make_balance_scale()
    >>> np.bincount(y)[1:]
    array([288,  49, 288])
    """
    X = 1.0 + np.indices((5, 5, 5, 5), dtype=np.float64).reshape(4, -1).T
    tilt = X[:, 2] * X[:, 3] - X[:, 0] * X[:, 1]
    return X, (2 + np.sign(tilt)).astype(np.intp)


def cut_by_rank(target: ArrayLike, n_classes: int) -> IntArray:
    """Cut a continuous target into classes of equal size.

    The cut is by rank, not by value: rows with tied targets may fall in two neighbouring classes, the earlier
    rows in the lower one. This is how the public ordinal versions of the regression sets were made.

    Parameters
    ----------
    target : array-like of shape (n,)
        Finite numbers.
    n_classes : int
        Number of classes, at most n.

    Returns
    -------
    ndarray of int of shape (n,)
        Labels 1 to `n_classes`. Sizes differ by at most one, the larger classes being the lower ones.

    Examples
    --------
    >>> cut_by_rank([0.3, 9.0, 0.1, 7.0, 0.2], n_classes=2)
    array([1, 2, 1, 2, 1])
    >>> cut_by_rank([5.0, 5.0, 5.0, 5.0], n_classes=2)  # ties go by row order
    array([1, 1, 2, 2])
    """
    target = np.asarray(target, dtype=np.float64)
    if target.ndim != 1 or not np.isfinite(target).all():
        raise ValueError(
            f"target has shape {target.shape} and {np.count_nonzero(~np.isfinite(target))} value(s) that are "
            "not finite; one finite number a row is needed. Drop the rows without a target."
        )
    if not 1 <= n_classes <= len(target):
        raise ValueError(
            f"n_classes is {n_classes} for {len(target)} row(s); between 1 and the number of rows is needed."
        )
    labels = np.empty(len(target), dtype=np.intp)
    order = np.argsort(target, kind="stable")
    for label, rows in enumerate(np.array_split(order, n_classes), start=1):
        labels[rows] = label
    return labels


# --- Benchmark files --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Benchmark:
    """What a benchmark file is called, holds and means."""

    file: str
    shape: tuple[int, int]  # rows, features
    n_classes: int
    continuous: bool  # the file's target is a number, to be cut by rank
    openml_id: int | None
    about: str


_BENCHMARKS = {
    "bs": _Benchmark(
        "balance_scale.csv",
        (625, 4),
        3,
        continuous=False,
        openml_id=11,
        about="Balance Scale (UCI): which way a loaded scale tips, 1 = left, 2 = balanced, 3 = right. "
        "The full grid of 5^4 cases, without noise: computed from its rule when no file is found. "
        "A file may hold the rows in another order.",
    ),
    "swd": _Benchmark(
        "swd.csv",
        (1000, 10),
        4,
        continuous=False,
        openml_id=1028,
        about="Social Workers' Decisions (A. Ben-David): risk to a child in four grades, from ten scores. "
        "Only 280 rows are distinct, and equal rows may have different labels. "
        "Rows come in blocks of one class: shuffle before splitting.",
    ),
    "marketing": _Benchmark(
        "marketing.csv",
        (8993, 13),
        9,
        continuous=False,
        openml_id=None,
        about="Marketing (Impact Resources, Inc., 1987; R package ElemStatLearn): household income in nine "
        "brackets from 13 integer codes, some of them nominal. 2694 cells in 2117 rows are missing (NaN).",
    ),
    "bank": _Benchmark(
        "bank8fm.csv.gz",
        (8192, 8),
        5,
        continuous=True,
        openml_id=572,
        about="Bank8FM (DELVE): rate of customers rejected by simulated banks, cut by rank into five "
        "classes.",
    ),
    "computer": _Benchmark(
        "cpu_small.csv.gz",
        (8192, 12),
        5,
        continuous=True,
        openml_id=562,
        about="Computer activity (DELVE, cpu_small): share of time in user mode, cut by rank into five "
        "classes. The share takes only 56 values, so equal shares sit in two classes and part of the error "
        "cannot be avoided. Features have heavy tails.",
    ),
    "calhouse": _Benchmark(
        "cal_housing.csv.gz",
        (20640, 8),
        5,
        continuous=True,
        openml_id=537,
        about="California housing (Pace & Barry, 1997; StatLib): median house value of a district, cut by "
        "rank into five classes. Raw totals, unlike scikit-learn's averages. Rows are ordered by place: "
        "shuffle before splitting. OpenML's copy names and orders the columns in its own way.",
    ),
    "census": _Benchmark(
        "house_16h.csv.gz",
        (22784, 16),
        5,
        continuous=True,
        openml_id=574,
        about="Census (DELVE, house_16H): median house price of a place in the 1990 US census, cut by rank "
        "into five classes. The feature P1, a population count, is extremely skewed.",
    ),
}

_MARKETING_HELP = (
    "No copy of it on OpenML is known. In R, with the package ElemStatLearn (in CRAN's archive), run\n"
    "  write.csv(cbind(ElemStatLearn::marketing[-1], target = ElemStatLearn::marketing$Income),\n"
    '            "marketing.csv", row.names = FALSE, na = "")\n'
    "and put the file in one of these directories."
)


@overload
def load_benchmark(
    name: str, *, data_home: str | os.PathLike[str] | None = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_benchmark(
    name: str, *, data_home: str | os.PathLike[str] | None = ..., return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_benchmark(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load one of the seven benchmark sets of the paper.

    The file is looked for in `data_home`, then in the directory that the environment variable ``ISBOR_DATA``
    names, then in the user's cache (``isbor`` in ``XDG_CACHE_HOME`` or ``~/.cache``). Failing these, the set
    is downloaded from OpenML and kept in the cache; "bs" is computed instead.

    Parameters
    ----------
    name : {"bs", "swd", "marketing", "bank", "computer", "calhouse", "census"}
        Which set, in upper or lower case.
    data_home : path, optional
        First directory to look in.
    return_X_y : bool
        Return ``(X, y)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data`` (float, NaN where missing), ``target`` (int, 1 to r), ``feature_names``, ``name`` and
        ``DESCR``. The continuous targets of "bank", "computer", "calhouse" and "census" are cut into five
        classes by `cut_by_rank`.

    Raises
    ------
    ValueError
        If the name is unknown, or a file that was found is not in the format described.
    OSError
        If no file was found and none could be downloaded.

    Examples
    --------
    >>> X, y = load_benchmark("bs", return_X_y=True)
    >>> X.shape, np.bincount(y)[1:]
    ((625, 4), array([288,  49, 288]))
    """
    key = name.lower()
    if key not in _BENCHMARKS:
        raise ValueError(f"name is {name!r}; the benchmark sets are {', '.join(map(repr, _BENCHMARKS))}.")
    benchmark = _BENCHMARKS[key]
    feature_names, X, target, source = _table(benchmark, _directories(data_home))
    y = cut_by_rank(target, benchmark.n_classes) if benchmark.continuous else _class_labels(target, source)
    if y.max() != benchmark.n_classes:
        raise ValueError(
            f"{source} holds {y.max()} classes; the set {key!r} has {benchmark.n_classes}. "
            "Supply a complete file by data_home= or by the environment variable ISBOR_DATA."
        )
    if return_X_y:
        return X, y
    about = f"{benchmark.about}\nSource: {source}"
    return Bunch(data=X, target=y, feature_names=feature_names, name=key, DESCR=about)


def _table(
    benchmark: _Benchmark, directories: Sequence[Path]
) -> tuple[list[str], FloatArray, FloatArray, str]:
    """Return feature names, features, target and source, from the first place that has them."""
    for directory in directories:
        path = directory / benchmark.file
        if path.is_file():
            names, X, target = _read_csv(path)
            _check_shape(X, benchmark, str(path))
            return names, X, target, str(path)
    if benchmark is _BENCHMARKS["bs"]:
        X, y = make_balance_scale()
        names = ["left_weight", "left_distance", "right_weight", "right_distance"]
        return names, X, y.astype(np.float64), "isbor.datasets.make_balance_scale"
    looked = f"{benchmark.file} is in none of {', '.join(map(str, directories))}"
    if benchmark.openml_id is None:
        raise FileNotFoundError(f"{looked}. {_MARKETING_HELP}")
    try:
        names, X, target = _download(benchmark.openml_id)
    except OSError as error:
        raise ConnectionError(
            f"{looked}, and OpenML data set {benchmark.openml_id} could not be downloaded ({error}). "
            "Go online, or put the file in one of these directories, or name its directory by data_home= or "
            "by the environment variable ISBOR_DATA."
        ) from error
    source = f"OpenML data set {benchmark.openml_id}"
    _check_shape(X, benchmark, source)
    cached = _cache_directory() / benchmark.file
    try:
        _write_csv(cached, names, X, target)
    except OSError as error:  # the data are at hand: a read-only home only costs the next download
        logger.warning("%s could not be kept in the cache: %s", cached, error)
    return names, X, target, source


def _check_shape(X: FloatArray, benchmark: _Benchmark, source: str) -> None:
    if X.shape != benchmark.shape:
        raise ValueError(
            f"{source} holds a table of features of shape {X.shape}; {benchmark.shape} is needed. "
            "Supply a complete file by data_home= or by the environment variable ISBOR_DATA."
        )


def _directories(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the directories to look in, in turn."""
    given = [data_home, os.environ.get("ISBOR_DATA")]
    return [Path(place).expanduser() for place in given if place] + [_cache_directory()]


def _cache_directory() -> Path:
    """Return the user's cache directory; LOCALAPPDATA is set on Windows only."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(root) / "isbor"


def _class_labels(target: FloatArray, source: str) -> IntArray:
    """Return the labels 1, …, r in the order of the file's numbers (OpenML's SWD may count otherwise)."""
    if not np.isfinite(target).all():
        raise ValueError(
            f"{source} has row(s) without a target; each needs one. Replace the file, or remove it."
        )
    return 1 + np.unique(target, return_inverse=True)[1].astype(np.intp)


def _download(openml_id: int) -> tuple[list[str], FloatArray, FloatArray]:
    """Fetch feature names, features and target from OpenML."""
    with warnings.catch_warnings():
        # The caller's error says more than the warning that announces a second attempt.
        warnings.filterwarnings("ignore", message="A network error occurred")
        # The liac-arff parser needs no pandas; the file is kept in our own cache.
        found = fetch_openml(data_id=openml_id, as_frame=False, parser="liac-arff", cache=False, n_retries=1)
    return (
        list(found.feature_names),
        np.asarray(found.data, dtype=np.float64),
        np.asarray(found.target, dtype=np.float64),
    )


def _read_csv(path: Path) -> tuple[list[str], FloatArray, FloatArray]:
    """Read feature names, features and target from a benchmark file."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        values = np.array([[float(field or "nan") for field in row] for row in rows])
        if header[-1:] != ["target"] or values.shape != (len(rows), len(header)):
            raise ValueError(f"the header is {header}, the table has shape {values.shape}")
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is not a benchmark file: {error}. A header line, rows of numbers as long as the header, "
            "empty fields where values are missing, and a last column named 'target' are needed. Replace the "
            "file, or remove it."
        ) from error
    return header[:-1], np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()


def _write_csv(path: Path, names: Sequence[str], X: FloatArray, target: FloatArray) -> None:
    """Write a benchmark file; a reader never sees half of it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "target"])
    for row in np.column_stack([X, target]).tolist():
        # repr is the shortest text that reads back as the same number
        writer.writerow(["" if value != value else repr(value).removesuffix(".0") for value in row])
    content = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as part:
        try:
            part.write(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
            part.close()
            os.replace(part.name, path)
        except BaseException:
            part.close()
            os.unlink(part.name)
            raise
