"""The seven benchmark sets of the paper, from files or from OpenML."""

import importlib
import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from isbor.arrays import FloatArray, IntArray
from isbor.datasets.files import read_table, write_table
from isbor.datasets.synthetic import make_balance_scale

__all__ = ["cut_by_rank", "load_benchmark"]

logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class _Codes:
    """What the codes first, first + 1, … of a column mean."""

    levels: tuple[str, ...]
    ordered: bool = False
    first: int = 1


@dataclass(frozen=True, slots=True)
class _Benchmark:
    """What a benchmark file is called, holds and means."""

    file: str
    shape: tuple[int, int]  # rows, features
    n_classes: int
    continuous: bool  # the file's target is a number, to be cut by rank
    openml_id: int | None
    about: str
    codes: dict[str, _Codes] = field(default_factory=dict)  # by the names of categorical features


# The help page of the set in the R package ElemStatLearn.
_MARKETING_CODES = {
    "sex": _Codes(("Male", "Female")),
    "marital": _Codes(
        (
            "Married",
            "Living together, not married",
            "Divorced or separated",
            "Widowed",
            "Single, never married",
        )
    ),
    "age": _Codes(("14-17", "18-24", "25-34", "35-44", "45-54", "55-64", "65 and over"), ordered=True),
    "edu": _Codes(
        (
            "Grade 8 or less",
            "Grades 9 to 11",
            "Graduated high school",
            "1 to 3 years of college",
            "College graduate",
            "Grad study",
        ),
        ordered=True,
    ),
    "occupation": _Codes(
        (
            "Professional/managerial",
            "Sales worker",
            "Factory worker/laborer/driver",
            "Clerical/service worker",
            "Homemaker",
            "Student, high school or college",
            "Military",
            "Retired",
            "Unemployed",
        )
    ),
    "lived": _Codes(
        (
            "Less than one year",
            "One to three years",
            "Four to six years",
            "Seven to ten years",
            "More than ten years",
        ),
        ordered=True,
    ),
    "dual_income": _Codes(("Not married", "Yes", "No")),
    "household": _Codes(("1", "2", "3", "4", "5", "6", "7", "8", "9 or more"), ordered=True),
    "householdu18": _Codes(("0", "1", "2", "3", "4", "5", "6", "7", "8", "9 or more"), ordered=True, first=0),
    "status": _Codes(("Own", "Rent", "Live with parents/family")),
    "home_type": _Codes(("House", "Condominium", "Apartment", "Mobile home", "Other")),
    "ethnic": _Codes(
        (
            "American Indian",
            "Asian",
            "Black",
            "East Indian",
            "Hispanic",
            "Pacific Islander",
            "White",
            "Other",
        )
    ),
    "language": _Codes(("English", "Spanish", "Other")),
}

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
        "brackets from 13 categories, five of them ordered. 2694 cells in 2117 rows are missing.",
        codes=_MARKETING_CODES,
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
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[False] = ...,
    as_frame: bool | Literal["auto"] = ...,
) -> Bunch: ...


@overload
def load_benchmark(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[True],
    as_frame: Literal[False],
) -> tuple[FloatArray, IntArray]: ...


@overload
def load_benchmark(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[True],
    as_frame: bool | Literal["auto"] = ...,
) -> tuple[Any, IntArray]: ...


def load_benchmark(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
    as_frame: bool | Literal["auto"] = "auto",
) -> Bunch | tuple[Any, IntArray]:
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
    as_frame : bool or "auto"
        True: the features are a data frame of pandas, or of polars if that alone is installed; codes of
        categories are replaced by what they mean. False: an array of numbers, codes as they are, NaN where
        missing. "auto": a frame for "marketing", the one set with categories, if pandas or polars is
        installed, and an array otherwise.

    Returns
    -------
    Bunch
        ``data`` (the features), ``target`` (int, 1 to r), ``feature_names``, ``name`` and ``DESCR``. The
        continuous targets of "bank", "computer", "calhouse" and "census" are cut into five classes by
        `cut_by_rank`.

    Raises
    ------
    ValueError
        If the name is unknown, or a file that was found is not in the format described.
    OSError
        If no file was found and none could be downloaded.
    ImportError
        If a frame is asked for, and neither pandas nor polars is installed.

    Examples
    --------
    >>> X, y = load_benchmark("bs", return_X_y=True)
    >>> X.shape, np.bincount(y)[1:]
    ((625, 4), array([288,  49, 288]))
    """
    key = name.lower()
    if key not in _BENCHMARKS:
        raise ValueError(f"name is {name!r}; the benchmark sets are {', '.join(map(repr, _BENCHMARKS))}.")
    if as_frame not in (True, False, "auto"):
        raise ValueError(f"as_frame is {as_frame!r}; True, False or 'auto' is needed.")
    benchmark = _BENCHMARKS[key]
    wants_frame = bool(benchmark.codes) if as_frame == "auto" else as_frame
    library = _frame_library(required=as_frame is True) if wants_frame else None
    feature_names, X, target, source = _table(benchmark, _directories(data_home))
    y = cut_by_rank(target, benchmark.n_classes) if benchmark.continuous else _class_labels(target, source)
    if y.max() != benchmark.n_classes:
        raise ValueError(
            f"{source} holds {y.max()} classes; the set {key!r} has {benchmark.n_classes}. "
            "Supply a complete file by data_home= or by the environment variable ISBOR_DATA."
        )
    data = X if library is None else _frame(library, feature_names, X, benchmark.codes, source)
    if return_X_y:
        return data, y
    about = f"{benchmark.about}\nSource: {source}"
    return Bunch(data=data, target=y, feature_names=feature_names, name=key, DESCR=about)


def _table(
    benchmark: _Benchmark, directories: Sequence[Path]
) -> tuple[list[str], FloatArray, FloatArray, str]:
    """Return feature names, features, target and source, from the first place that has them."""
    for directory in directories:
        path = directory / benchmark.file
        if path.is_file():
            names, X, target = read_table(path)
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
        write_table(cached, names, X, target)
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


def _frame_library(*, required: bool) -> ModuleType | None:
    """Return pandas, or else polars, or else None."""
    for name in ("pandas", "polars"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    if required:
        raise ImportError(
            "as_frame=True needs pandas or polars, and neither is installed. Install one, for instance with "
            "`pip install pandas`, or pass as_frame=False for an array of numbers."
        )
    return None


def _frame(
    library: ModuleType, names: Sequence[str], X: FloatArray, codes: dict[str, _Codes], source: str
) -> Any:
    """Return a data frame of pandas or polars, in which codes of categories are replaced by their meaning."""
    columns = {}
    for name, column in zip(names, X.T, strict=True):
        meaning = codes.get(name.lower())  # the names in R are capitalised
        if codes and meaning is None:
            raise ValueError(
                f"{source} has a column {name!r}; {', '.join(codes)} are needed. Correct its header, or pass "
                "as_frame=False for an array of numbers."
            )
        columns[name] = column if meaning is None else _category(library, column, meaning, name, source)
    return library.DataFrame(columns)


def _category(library: ModuleType, column: FloatArray, codes: _Codes, name: str, source: str) -> Any:
    position = column - codes.first
    known = np.isin(position, np.arange(len(codes.levels)))
    unknown = column[~known & ~np.isnan(column)]
    if len(unknown):
        raise ValueError(
            f"{source} holds {unknown[0]:g} in the column {name!r}; {codes.first} to "
            f"{codes.first + len(codes.levels) - 1} or an empty field is needed. Replace the file."
        )
    position = np.where(known, position, -1).astype(np.intp)
    if library.__name__ == "pandas":
        return library.Categorical.from_codes(position, codes.levels, ordered=codes.ordered)
    texts = np.array([*codes.levels, None], dtype=object)[position].tolist()
    dtype = library.Enum(list(codes.levels)) if codes.ordered else library.Categorical
    return library.Series(name, texts, dtype=dtype)


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
