"""The seven benchmark sets of the paper, from files or from OpenML."""

import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from isbor._core.tables import frame_library
from isbor._core.types import FloatArray, IntArray
from isbor.datasets.catalogue import BENCHMARKS, Benchmark
from isbor.datasets.files import read_table, write_table
from isbor.datasets.frames import frame
from isbor.datasets.synthetic import make_balance_scale

__all__ = ["cut_by_rank", "load_benchmark"]

logger = logging.getLogger(__name__)


def cut_by_rank(target: ArrayLike, n_classes: int) -> IntArray:
    """Cut a continuous target into classes of equal size.

    The target is cut by rank, not by value: rows with tied targets may be put in two adjacent classes, the
    earlier rows in the lower one. The public ordinal versions of these regression sets were made in this way.

    Parameters
    ----------
    target : array-like of shape (n,)
        Finite numbers.
    n_classes : int
        Number of classes, at most n.

    Returns
    -------
    ndarray of int of shape (n,)
        Labels 1 to `n_classes`. Class sizes differ by at most one; the lower classes are the larger ones.

    Examples
    --------
    >>> cut_by_rank([0.3, 9.0, 0.1, 7.0, 0.2], n_classes=2)
    array([1, 2, 1, 2, 1])
    >>> cut_by_rank([5.0, 5.0, 5.0, 5.0], n_classes=2)  # ties in row order
    array([1, 1, 2, 2])
    """
    target = np.asarray(target, dtype=np.float64)
    if target.ndim != 1 or not np.isfinite(target).all():
        raise ValueError(
            f"target has shape {target.shape} and {np.count_nonzero(~np.isfinite(target))} value(s) that are "
            "not finite; one finite number per row is needed. Drop rows without a target."
        )
    if not 1 <= n_classes <= len(target):
        raise ValueError(
            f"n_classes is {n_classes} for {len(target)} row(s); an integer from 1 to the number of rows is "
            "needed."
        )
    labels = np.empty(len(target), dtype=np.intp)
    order = np.argsort(target, kind="stable")
    for label, rows in enumerate(np.array_split(order, n_classes), start=1):
        labels[rows] = label
    return labels


_MARKETING_HELP = (
    "It is not available on OpenML. In R, with the package ElemStatLearn (in the CRAN archive), run\n"
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

    The file is searched in `data_home`, then in the directory given by the environment variable
    ``ISBOR_DATA``, then in the user's cache (``isbor`` in ``XDG_CACHE_HOME`` or ``~/.cache``). If it is not
    found, the set is downloaded from OpenML and stored in the cache; "bs" is computed instead.

    Parameters
    ----------
    name : {"bs", "swd", "marketing", "bank", "computer", "calhouse", "census"}
        Name of the set, in upper or lower case.
    data_home : path, default=None
        First directory to search.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` instead of a Bunch.
    as_frame : bool or "auto", default="auto"
        If True, the features are a pandas data frame, or a polars one if only polars is installed, and coded
        categories are replaced by their names. If False, they are an array of numbers, with codes as they are
        and NaN for missing values. "auto" gives a data frame for "marketing", the only set with categories,
        if pandas or polars is installed, else an array.

    Returns
    -------
    Bunch
        With the attributes ``data`` (the features), ``target`` (integers from 1), ``feature_names``, ``name``
        and ``DESCR``. The continuous targets of "bank", "computer", "calhouse" and "census" are cut into five
        classes by `cut_by_rank`.

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not have the described format.
    OSError
        If no file was found and the download failed.
    ImportError
        If ``as_frame=True`` and neither pandas nor polars is installed.

    Examples
    --------
    >>> X, y = load_benchmark("bs", return_X_y=True)
    >>> X.shape, np.bincount(y)[1:]
    ((625, 4), array([288,  49, 288]))
    """
    key = name.lower()
    if key not in BENCHMARKS:
        raise ValueError(f"name is {name!r}; the benchmark sets are {', '.join(map(repr, BENCHMARKS))}.")
    if as_frame not in (True, False, "auto"):
        raise ValueError(f"as_frame is {as_frame!r}; True, False or 'auto' is needed.")
    benchmark = BENCHMARKS[key]
    wants_frame = bool(benchmark.codes) if as_frame == "auto" else as_frame
    library = frame_library() if wants_frame else None
    if as_frame is True and library is None:
        raise ImportError(
            "as_frame=True needs pandas or polars, and neither is installed. Install one, for example with "
            "`pip install pandas`, or pass as_frame=False for an array of numbers."
        )
    feature_names, X, target, source = _table(benchmark, _directories(data_home))
    y = cut_by_rank(target, benchmark.n_classes) if benchmark.continuous else _class_labels(target, source)
    if y.max() != benchmark.n_classes:
        raise ValueError(
            f"{source} holds {y.max()} classes; {benchmark.n_classes} are needed for the set {key!r}. "
            "Provide a complete file with data_home= or the environment variable ISBOR_DATA."
        )
    data = X if library is None else frame(library, feature_names, X, benchmark.codes, source)
    if return_X_y:
        return data, y
    about = f"{benchmark.about}\nSource: {source}"
    return Bunch(data=data, target=y, feature_names=feature_names, name=key, DESCR=about)


def _table(
    benchmark: Benchmark, directories: Sequence[Path]
) -> tuple[list[str], FloatArray, FloatArray, str]:
    """Return feature names, features, target and source, from the first place where they are found."""
    for directory in directories:
        path = directory / benchmark.file
        if path.is_file():
            names, X, target = read_table(path)
            _check_shape(X, benchmark, str(path))
            return names, X, target, str(path)
    if benchmark is BENCHMARKS["bs"]:
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
            "Check the network connection, put the file in one of these directories, or give its directory "
            "with data_home= or the environment variable ISBOR_DATA."
        ) from error
    source = f"OpenML data set {benchmark.openml_id}"
    _check_shape(X, benchmark, source)
    cached = _cache_directory() / benchmark.file
    try:
        write_table(cached, names, X, target)
    except OSError as error:  # not needed now: the next call downloads the set again
        logger.warning("%s could not be stored in the cache: %s", cached, error)
    return names, X, target, source


def _check_shape(X: FloatArray, benchmark: Benchmark, source: str) -> None:
    if X.shape != benchmark.shape:
        raise ValueError(
            f"{source} holds a table of features of shape {X.shape}; {benchmark.shape} is needed. "
            "Provide a complete file with data_home= or the environment variable ISBOR_DATA."
        )


def _directories(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the directories to search, in order."""
    given = [data_home, os.environ.get("ISBOR_DATA")]
    return [Path(place).expanduser() for place in given if place] + [_cache_directory()]


def _cache_directory() -> Path:
    """Return the user's cache directory (LOCALAPPDATA is set on Windows only)."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(root) / "isbor"


def _class_labels(target: FloatArray, source: str) -> IntArray:
    """Return labels 1, …, r in the order of the numbers in the file, which may start at another number."""
    if not np.isfinite(target).all():
        raise ValueError(
            f"{source} has row(s) without a target; every row needs one. Replace or remove the file."
        )
    return 1 + np.unique(target, return_inverse=True)[1].astype(np.intp)


def _download(openml_id: int) -> tuple[list[str], FloatArray, FloatArray]:
    """Download feature names, features and target from OpenML."""
    from sklearn.datasets import fetch_openml  # imports much that nothing else needs

    with warnings.catch_warnings():
        # The caller's error says more than this warning about a second attempt.
        warnings.filterwarnings("ignore", message="A network error occurred")
        # The liac-arff parser needs no pandas; the file is kept in our own cache.
        found = fetch_openml(data_id=openml_id, as_frame=False, parser="liac-arff", cache=False, n_retries=1)
    return (
        list(found.feature_names),
        np.asarray(found.data, dtype=np.float64),
        np.asarray(found.target, dtype=np.float64),
    )
