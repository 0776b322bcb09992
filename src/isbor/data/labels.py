"""Ordered labels in and out.

Inside the package a label is its rank 0 < 1 < … < r−1; outside it keeps the type its owner gave it. The order
is never guessed. It comes from, in this sequence:

1. ``classes=``, lowest first;
2. an ordered categorical (pandas) or ``Enum`` (polars), levels without rows included;
3. the labels themselves, if they are booleans, integers or whole floats: the numbers that occur, ascending.

Strings, which would sort alphabetically, are refused without 1 or 2. Decoding is ``classes[codes]``.

>>> labels = encode_labels(["low", "high", "low"], classes=["low", "medium", "high"])
>>> labels.codes.tolist()
[0, 2, 0]
>>> labels.classes[labels.codes].tolist()
['low', 'high', 'low']
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import column_or_1d

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor._core.warnings import warn_user

__all__ = [
    "OrderedLabels",
    "declared_order",
    "encode_labels",
    "is_missing",
    "is_quantity",
    "levels_of_weight",
    "observed_levels",
    "ordered_union",
    "rank_labels",
    "warn_of_quantity",
]

_Kind: TypeAlias = Literal["booleans", "numbers", "strings", "objects"]

_KIND_OF_DTYPE: dict[str, _Kind] = {
    "b": "booleans",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "U": "strings",
    "T": "strings",
    "O": "objects",
}
_SHOWN = 10  # labels quoted in a message


@dataclass(frozen=True, slots=True)
class OrderedLabels:
    """Labels as positions in their order."""

    classes: LabelArray  # (r,) all levels, lowest first, in the labels' own type
    codes: IntArray  # (n,) position of each row's label in classes
    given_order: bool = True  # whether the order was given; else classes are the numbers that occur


def encode_labels(y: object, classes: object = None) -> OrderedLabels:
    """Return the order of the labels and each row's position in it.

    Parameters
    ----------
    y : array-like of shape (n,)
        Booleans, integers (gaps are fine), whole floats, or an ordered categorical; any other labels, strings
        above all, need `classes`.
    classes : sequence of at least 2 distinct labels, optional
        All levels, lowest first. Takes precedence over the order of an ordered categorical.
    """
    values, declared = _read(y, "y")
    if classes is not None:
        order = _read_order(classes)
        if len(order) < 2:
            raise ValueError(
                f"classes holds {len(order)} label {order.tolist()}; at least 2 are needed. "
                "List all classes, lowest first, also those without rows."
            )
    elif declared is not None:
        order = declared
    else:
        order = _natural_order(values)
    is_given = classes is not None or declared is not None
    return OrderedLabels(order, _ranks(values, order), is_given)


def rank_labels(y: object, classes: object) -> IntArray:
    """Return the position, shape (n,), of each label of `y` in the order `classes`."""
    return _ranks(_read(y, "y")[0], _read_order(classes))


def ordered_union(classes: object, y: object) -> LabelArray:
    """Return an order that keeps `classes` and also has a place for each label of `y`.

    A number or boolean that `classes` lacks is put in its place by size, which needs ascending `classes`.
    Other labels have no such place: each must be in `classes` already.
    """
    order = _read_order(classes)
    values, _ = _read(y, "y")
    _refuse_other_kind(values, order)
    unknown = _distinct(values[_positions(values, order) < 0])
    if not unknown:
        return order
    if _kind(order) in ("strings", "objects") or np.any(np.argsort(order) != np.arange(len(order))):
        raise _unknown_labels(unknown, order)
    return np.unique(np.concatenate([order, values]))


def observed_levels(labels: OrderedLabels, weight: FloatArray | None = None, *, fewest: int = 2) -> IntArray:
    """Return the codes, ascending, of the levels whose rows have positive total weight.

    A level all of whose rows weigh nothing counts as absent, as if the rows had been removed.
    """
    total = np.bincount(labels.codes, weights=weight, minlength=len(labels.classes)).astype(np.float64)
    return levels_of_weight(labels.classes, total, fewest=fewest)


def levels_of_weight(classes: LabelArray, total: FloatArray, *, fewest: int = 2) -> IntArray:
    """Return the codes, ascending, of the levels with positive total weight."""
    observed = np.flatnonzero(total > 0)
    if len(observed) < fewest:
        needed = f"{fewest} {'is' if fewest == 1 else 'are'} needed"
        raise ValueError(
            f"y holds {len(observed)} {'class' if len(observed) == 1 else 'classes'} with positive weight "
            f"{classes[observed].tolist()}; at least {needed}. "
            "Check the target column, the filter that made this subset, and the sample weights."
        )
    return observed


def is_quantity(n_distinct: int, n_rows: int) -> bool:
    """Whether so many different numbers are more likely a quantity than ordered classes."""
    return n_distinct > max(20, n_rows // 10)


def warn_of_quantity(n_classes: int, n_rows: int, given_order: bool) -> None:
    """Warn if the labels are so many different numbers that a few classes cannot be meant."""
    if not given_order and is_quantity(n_classes, n_rows):
        warn_user(
            f"y holds {n_classes} different numbers in {n_rows} rows, and each becomes a class. If y is a "
            "quantity, cut it into a few classes first, for instance with pandas.qcut(y, 5, labels=False). "
            "If these are the classes, list them, lowest first, in classes=.",
            UserWarning,
        )


# Reading: from whatever the caller has to one clean array, shape (n,), of one kind.


def _read(labels: object, name: str) -> tuple[LabelArray, LabelArray | None]:
    """Return the labels, none missing, and the order they carry if they are an ordered categorical."""
    if labels is None:
        raise ValueError(
            f"This task requires {name} to be passed, but the target {name} is None. Pass one label per row."
        )
    column = _only_column(nw.from_native(labels, pass_through=True, eager_only=True, allow_series=True))
    if isinstance(column, nw.Series):
        _refuse_missing(column.is_null().to_numpy(), name)
        # Not column_or_1d: it turns the nullable integers and booleans of pandas into floats.
        values = column.to_numpy()
        categories = declared_order(column)
    else:
        values = _one_dimensional(column)
        _refuse_missing(np.ma.getmaskarray(column).ravel() if np.ma.isMaskedArray(column) else False, name)
        # A bare pandas.Categorical or CategoricalIndex, which narwhals does not wrap.
        dtype: Any = getattr(column, "dtype", None)
        categories = dtype.categories if getattr(dtype, "ordered", None) is True else None
    if len(values) == 0:
        raise ValueError(f"{name} is empty; labels are needed. Check the filter that made it.")
    values = _refuse_nonfinite(_one_kind(values, name), name)
    if isinstance(column, Sequence) and all(type(label) is str for label in values.tolist()):
        # A list has no array type to keep. Only for str itself: numpy garbles the members of a str Enum.
        values = np.array(values.tolist())
    return values, None if categories is None else _read_order(list(categories))


def declared_order(column: nw.Series[Any]) -> Iterable[Any] | None:
    """Return the categories of an ordered categorical, lowest first; None for other columns."""
    if not column.implementation.is_pandas_like():
        return column.dtype.categories if isinstance(column.dtype, nw.Enum) else None
    # Not narwhals' type: it is remembered by that of pandas, for which 1, 0 and True, False are the same.
    dtype = column.to_native().dtype
    return dtype.categories if getattr(dtype, "ordered", None) is True else None


def _read_order(classes: object) -> LabelArray:
    """Return the distinct labels of `classes`, in the sequence given, as an array of their own."""
    is_array = hasattr(classes, "__array__")
    is_list = isinstance(classes, Sequence) and not isinstance(classes, str | bytes)
    if not (is_array or is_list) or np.ndim(cast(ArrayLike, classes)) != 1:
        raise ValueError(
            f"classes must be a sequence of labels, lowest first; got {type(classes).__name__} {classes!r}. "
            "Pass a list, such as classes=['low', 'medium', 'high']."
        )
    order, _ = _read(classes, "classes")
    repeated = [label for label, count in Counter(order.tolist()).items() if count > 1]
    if repeated:
        raise ValueError(
            f"classes holds {_quote(repeated)} more than once; each label is needed once. "
            "Remove the repetitions."
        )
    return order.copy()


def _only_column(labels: Any) -> Any:
    """Return the column of a data frame that has one, and anything else as it is."""
    if not isinstance(labels, nw.DataFrame):
        return labels
    if labels.shape[1] != 1:
        raise ValueError(
            f"y should be a 1d array, got a data frame of shape {labels.shape}, "
            f"columns {_quote(labels.columns)}. Pass the one column that holds the labels."
        )
    warn_user(
        "A column-vector y was passed when a 1d array was expected. Please pass the column itself, "
        f"frame[{labels.columns[0]!r}].",
        DataConversionWarning,
    )
    return labels[labels.columns[0]]


def _one_dimensional(labels: Any) -> LabelArray:
    if hasattr(labels, "__array__"):
        labels = np.asarray(labels)
    elif isinstance(labels, Sequence) and not isinstance(labels, str | bytes):
        # As objects first: numpy alone would turn [1, "a"] into ["1", "a"] and [True, 2] into [1, 2].
        labels = np.asarray(labels, dtype=object)
    shape = np.shape(labels)
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead. Pass one label for each row; of "
            "a matrix with a column of 0 and 1 for each class, y.argmax(axis=1)."
        )
    values: LabelArray = column_or_1d(labels, warn=True)
    return values


def _one_kind(values: LabelArray, name: str) -> LabelArray:
    """Return the labels with objects that are booleans or numbers made so; mixtures are refused."""
    if values.dtype.kind not in _KIND_OF_DTYPE:
        raise ValueError(
            f"Unknown label type: {values.dtype.name}. {name} must hold integers, whole floats, booleans or "
            "strings, or be an ordered categorical of these. Convert it, for example with astype(str)."
        )
    if values.dtype.kind != "O":
        return values
    items = values.tolist()
    types = sorted(set(map(type, items)), key=lambda t: t.__name__)
    if not all(issubclass(t, int | str) for t in types):  # those cannot be missing, and are the common case
        _refuse_missing(np.fromiter(map(is_missing, items), bool, len(items)), name)
    kinds = {_kind_of_type(t) for t in types}
    if len(kinds) > 1:
        examples = {t.__name__: next(item for item in items if type(item) is t) for t in types}
        raise ValueError(
            f"Unknown label type: mixed. {name} holds labels of several types, such as {examples}; "
            "one type is needed. Convert all labels to it, for instance with astype(str)."
        )
    for t in types:
        if not issubclass(t, Hashable):
            raise ValueError(
                f"Unknown label type: {t.__name__}. {name} must hold one number, boolean or string per row; "
                f"found {next(item for item in items if type(item) is t)!r}."
            )
    # Integers beyond 64 bits stay objects: they can be looked up in classes, though not sorted as numbers.
    return values if kinds & {"strings", "objects"} else np.array(items)


def _kind(values: LabelArray) -> _Kind:
    """Kind of labels that `_read` returned: an array of objects is of one kind."""
    kind = _KIND_OF_DTYPE[values.dtype.kind]
    return "strings" if kind == "objects" and isinstance(values[0], str) else kind


def _kind_of_type(t: type) -> _Kind:
    if issubclass(t, bool | np.bool_):
        return "booleans"
    if issubclass(t, int | float | np.integer | np.floating):
        return "numbers"
    return "strings" if issubclass(t, str) else "objects"


def is_missing(label: object) -> bool:
    """Whether a label is None, NaN, or the missing value of pandas."""
    # pandas.NA and pandas.NaT by name, since pandas need not be installed.
    return (
        label is None
        or (isinstance(label, float | np.floating) and bool(np.isnan(label)))
        or type(label).__name__ in ("NAType", "NaTType")
    )


def _refuse_missing(missing: NDArray[np.bool_] | bool, name: str) -> None:
    if np.any(missing):
        raise ValueError(
            f"Input {name} contains NaN. {_count_and_first(missing, 'missing (NaN, None, null or masked)')}. "
            "Drop them, with their rows of X, or fill them in."
        )


def _refuse_nonfinite(values: LabelArray, name: str) -> LabelArray:
    if values.dtype.kind == "f":
        _refuse_missing(np.isnan(values), name)
        infinite = np.isinf(values)
        if infinite.any():
            # scikit-learn's own sentence comes first: its checks look for it.
            raise ValueError(
                f"Input {name} contains infinity or a value too large for dtype('{values.dtype}'). "
                f"{_count_and_first(infinite, 'infinite')}. Drop these rows, or give them finite labels."
            )
    return values


# Order: from clean arrays to positions.


def _natural_order(values: LabelArray) -> LabelArray:
    """Return the labels that occur, ascending; only numbers and booleans have such an order."""
    kind = _kind(values)
    if kind in ("strings", "objects"):
        noun = "strings" if kind == "strings" else f"labels of type {type(values[0]).__name__}"
        unknown_type = "" if kind == "strings" else f"Unknown label type: {type(values[0]).__name__}. "
        raise ValueError(
            f"{unknown_type}y holds {noun}, whose order must be given. Pass\n"
            f"    classes={_quote(_distinct(values))}  # lowest first: put these in order\n"
            "or make y an ordered categorical (pandas.Categorical(..., ordered=True), polars.Enum)."
        )
    if values.dtype.kind == "f":
        broken = values != np.floor(values)
        if broken.any():
            fractions = f"fractions, such as {values[np.argmax(broken)].item()!r}"
            raise ValueError(
                f"Unknown label type: continuous. In y {_count_and_first(broken, fractions)}; ordered "
                "classes are needed. Cut y into a few classes (pandas.qcut(y, 5, labels=False), "
                "numpy.digitize), round it, or list its values in classes=, lowest first."
            )
    return np.unique(values)


def _ranks(values: LabelArray, order: LabelArray) -> IntArray:
    _refuse_other_kind(values, order)
    codes = _positions(values, order)
    if np.any(codes < 0):
        raise _unknown_labels(_distinct(values[codes < 0]), order, _wrapper_hint(values, order))
    return codes


def _positions(values: LabelArray, order: LabelArray) -> IntArray:
    """Return the place of each value in `order`, −1 where it has none."""
    if _kind(order) in ("strings", "objects"):
        place = {label: i for i, label in enumerate(order.tolist())}
        return np.fromiter((place.get(label, -1) for label in values.tolist()), np.intp, len(values))
    sorter = np.argsort(order)
    ascending = order[sorter]
    slot = np.minimum(np.searchsorted(ascending, values), len(order) - 1)
    return np.where(ascending[slot] == values, sorter[slot], -1)


def _refuse_other_kind(values: LabelArray, order: LabelArray) -> None:
    found, needed = _kind(values), _kind(order)
    if found != needed:
        raise ValueError(
            f"y holds {found}, such as {values[:1].tolist()[0]!r}, but classes holds {needed}, "
            f"{_quote(order.tolist())}; the same type is needed. Convert y or classes."
            f"{_wrapper_hint(values, order)}"
        )


def _unknown_labels(unknown: list[Any], order: LabelArray, hint: str = "") -> ValueError:
    return ValueError(
        f"y holds {len(unknown)} label(s) not in classes: {_quote(unknown)}. "
        f"classes is {_quote(order.tolist())}. Add them to classes in their places, or correct y.{hint}"
    )


def _wrapper_hint(values: LabelArray, order: LabelArray) -> str:
    """Return the remedy if a wrapper may have replaced the labels by 0, 1, …, in sorted order."""
    is_code = _kind(order) != "numbers" or set(values.tolist()) <= set(range(len(order)))
    if _kind(values) != "numbers" or not is_code:
        return ""
    return (
        " A scikit-learn wrapper such as BaggingClassifier may have replaced the labels by their places in "
        "sorted (for strings: alphabetical) order. Then encode them yourself with isbor.OrderedLabelEncoder, "
        "which keeps their order, pass the integers to the wrapper, and leave out classes=."
    )


def _distinct(values: LabelArray) -> list[Any]:
    """Distinct labels in a sequence that does not depend on the rows; an order for display only."""
    distinct = set(values.tolist())
    try:
        return sorted(distinct)
    except TypeError:
        return sorted(distinct, key=repr)


def _quote(labels: Iterable[object]) -> str:
    """List of labels for a message, cut after the first few."""
    labels = list(labels)
    shown = ", ".join(map(repr, labels[:_SHOWN]))
    return f"[{shown}, … {len(labels) - _SHOWN} more]" if len(labels) > _SHOWN else f"[{shown}]"


def _count_and_first(rows: NDArray[np.bool_] | bool, what: str) -> str:
    """Say how many labels are what, and where the first of them is."""
    place = f"the first in row {np.argmax(rows)}, counted from 0"
    return f"{np.sum(rows)} of {np.size(rows)} labels are {what}, {place}"
