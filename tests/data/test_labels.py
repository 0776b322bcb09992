"""Laws and refusals of ordered labels."""

import datetime
import enum
import subprocess
import sys
from functools import partial

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from isbor.data.labels import OrderedLabels, encode_labels, observed_levels, ordered_union, rank_labels

LEVELS = ["low", "medium", "high"]  # alphabetical order would be high, low, medium
SIZES = ["low", "high", "low"]
NUMBER_TYPES = ["int8", "int32", "int64", "uint8", "uint64", "float32", "float64", "bool"]
NUMPY_STRING = getattr(np.dtypes, "StringDType", lambda: "U")()  # its own type since NumPy 2

int64 = st.integers(-(2**63), 2**63 - 1)
numbers = st.one_of(
    st.lists(int64, min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.integers(-(2**50), 2**50).map(float), min_size=1),
)


@st.composite
def labels_with_order(draw):
    """Rows, and an arbitrary order of levels that includes some without rows."""
    levels = draw(
        st.one_of(
            st.lists(st.integers(-100, 100), min_size=2, max_size=9, unique=True),
            st.lists(st.floats(-9, 9).map(lambda v: v + 0.0), min_size=2, max_size=9, unique=True),
            st.lists(st.text("abåß字 1", max_size=4), min_size=2, max_size=9, unique=True),
            st.permutations([False, True]),
        )
    )
    return draw(st.lists(st.sampled_from(levels), min_size=1, max_size=40)), levels


def decoded(labels):
    return labels.classes[labels.codes].tolist()


def type_name(y):
    return f"{type(y).__module__}.{type(y).__name__}-{getattr(y, 'dtype', '')}"


@given(numbers)
def test_numbers_round_trip_and_rank_by_size(y):
    for form in (y, np.array(y)):
        labels = encode_labels(form)
        assert decoded(labels) == y
        assert labels.classes.tolist() == sorted(set(y))  # gaps are not filled
        assert labels.codes.dtype == np.intp


@given(labels_with_order())
def test_explicit_order_round_trips_and_keeps_all_levels_in_place(case):
    y, levels = case
    labels = encode_labels(y, classes=levels)
    assert decoded(labels) == y
    assert labels.classes.tolist() == levels
    assert_array_equal(labels.codes, [levels.index(label) for label in y])
    assert_array_equal(rank_labels(y, levels), labels.codes)
    assert ordered_union(levels, y).tolist() == levels


@given(labels_with_order())
def test_ordered_categorical_gives_what_explicit_order_gives(case):
    y, levels = case
    categorical = pd.Categorical(y, categories=levels, ordered=True)
    expected = encode_labels(y, classes=levels)
    for form in (categorical, pd.Series(categorical), pd.CategoricalIndex(categorical)):
        labels = encode_labels(form)
        assert labels.classes.dtype.kind == expected.classes.dtype.kind
        assert_array_equal(labels.classes, expected.classes)
        assert_array_equal(labels.codes, expected.codes)


@pytest.mark.parametrize(
    "y",
    [
        SIZES,
        tuple(SIZES),
        *(np.array(SIZES, dtype=dtype) for dtype in (None, object, NUMPY_STRING)),
        *(pd.Series(SIZES, dtype=dtype) for dtype in (None, object, "category")),
        pd.Index(SIZES),
        *(pl.Series(SIZES, dtype=dtype) for dtype in (None, pl.Categorical)),
        nw.from_native(pl.Series(SIZES), series_only=True),
    ],
    ids=type_name,
)
def test_strings_need_an_order_and_take_the_one_given(y):
    labels = encode_labels(y, classes=LEVELS)
    assert_array_equal(labels.codes, [0, 2, 0])
    assert labels.classes.dtype.kind == "U"
    assert decoded(labels) == SIZES
    with pytest.raises(ValueError) as caught:
        encode_labels(y)
    assert "classes=['high', 'low']  # lowest first: put these in order" in str(caught.value)
    assert "ordered categorical (pandas.Categorical(..., ordered=True)" in str(caught.value)


def test_classes_are_copied():
    classes = np.array([1, 2, 3])
    labels = encode_labels([1, 2], classes=classes)
    classes[:] = 0
    assert labels.classes.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("y", "classes", "found", "codes"),
    [
        *(
            (["high", "low"], form(LEVELS), LEVELS, [2, 0])
            for form in (tuple, np.array, partial(np.array, dtype=object), pd.Index, pl.Series)
        ),
        ([3, 1], range(1, 6), [1, 2, 3, 4, 5], [2, 0]),
        ([1.0, 3.0], [1, 2, 3], [1, 2, 3], [0, 2]),  # integers and floats compare by value
        ([1, 3], [1.0, 2.5, 3.0], [1.0, 2.5, 3.0], [0, 2]),
        ([0.5, 1.5], [0.5, 1.0, 1.5], [0.5, 1.0, 1.5], [0, 2]),
        (["10", "2"], ["1", "2", "10"], ["1", "2", "10"], [2, 1]),  # not numbers
        # Classes win over an ordered categorical.
        (pd.Categorical(["low", "high"], ["high", "low"], ordered=True), LEVELS, LEVELS, [0, 2]),
        (pl.Series(["high", "low"], dtype=pl.Enum(LEVELS)), None, LEVELS, [2, 0]),
        # An unordered categorical of numbers is its numbers.
        (pd.Series(pd.Categorical([3, 1, 3], [3, 2, 1])), None, [1, 3], [1, 0, 1]),
    ],
)
def test_where_the_order_comes_from(y, classes, found, codes):
    labels = encode_labels(y, classes=classes)
    assert labels.classes.tolist() == found
    assert_array_equal(labels.codes, codes)


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        *((np.array([7, 0]).astype(dtype), dtype) for dtype in NUMBER_TYPES),
        *((form([2, 1], dtype="Int64"), "int64") for form in (pd.Series, pd.array)),
        (pd.Series([True, False], dtype="boolean"), "bool"),
        (np.array([2, 1], dtype=object), "int64"),
        (np.array([2, 1.0], dtype=object), "float64"),
        (np.array([np.True_, False], dtype=object), "bool"),
        (pl.Series([2, 1]), "int64"),
        (pl.Series([True, False]), "bool"),
    ],
)
def test_number_types_are_kept_and_nullable_and_object_columns_become_plain_arrays(y, dtype):
    labels = encode_labels(y)
    assert labels.classes.dtype == dtype
    assert_array_equal(labels.codes, [1, 0])


def test_bins_of_pandas_qcut_are_labels():
    y = pd.qcut(pd.Series([0.1, 5.0, 2.0, 9.0]), 2)
    labels = encode_labels(y)
    assert_array_equal(labels.codes, [0, 1, 0, 1])
    assert decoded(labels) == y.tolist()
    assert_array_equal(rank_labels(labels.classes[labels.codes], labels.classes), labels.codes)


@pytest.mark.parametrize("base", [(), (str,), (int,)], ids=str)
def test_enum_members_are_labels(base):
    size = enum.Enum("size", {"S": "1", "M": "2", "L": "3"}, type=base[0] if base else None)
    labels = encode_labels([size.L, size.S], classes=list(size))
    assert decoded(labels) == [size.L, size.S]
    assert_array_equal(labels.codes, [2, 0])


@pytest.mark.parametrize(
    ("y", "message", "classes"),
    [
        (np.array([[2], [1]]), "column-vector y", [1, 2]),
        (
            pd.DataFrame({"size": pd.Categorical(["high", "low"], LEVELS, ordered=True)}),
            r"frame\['size'\]",
            LEVELS,
        ),
        (
            pl.DataFrame({"size": ["high", "low"]}, schema={"size": pl.Enum(LEVELS)}),
            r"frame\['size'\]",
            LEVELS,
        ),
    ],
    ids=["numpy", "pandas", "polars"],
)
def test_a_table_of_one_column_is_flattened_with_a_warning(y, message, classes):
    with pytest.warns(DataConversionWarning, match=message):
        labels = encode_labels(y)
    assert labels.classes.tolist() == classes
    assert_array_equal(labels.codes, [len(classes) - 1, 0])


def test_data_frame_libraries_need_not_be_installed():
    code = (
        "import sys; sys.modules.update(pandas=None, polars=None)  # None: an import fails\n"
        "from isbor.data.labels import encode_labels; print(encode_labels(['b', 'a'], ['a', 'b']).codes)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[1 0]"


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, None, None],
        [1.0, 2.0, np.nan, np.nan],
        ["a", "b", None, np.nan],
        [1, 2, pd.NA, pd.NaT],
        np.array([1, 2, np.nan, np.nan], dtype=np.float32),
        np.ma.array([1, 2, 3, 4], mask=[0, 0, 1, 1]),
        pd.Series([1, 2, None, None], dtype="Int64"),
        pd.Series(["a", "b", None, None]),
        pd.Categorical(["a", "b", None, None], ordered=True),
        pd.Series(pd.Categorical(["a", "b", None, None], ordered=True)),
        pl.Series([1, 2, None, None]),
        pl.Series([1.0, 2.0, float("nan"), float("nan")]),
        pl.Series(["a", "b", None, None], dtype=pl.Enum(["a", "b"])),
    ],
    ids=type_name,
)
def test_missing_labels_are_counted_and_placed(y):
    with pytest.raises(ValueError, match=r"Input y contains NaN\. 2 of 4 labels are missing .* row 2"):
        encode_labels(y)


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        (
            [1.0, -np.inf, 2.0],
            r"Input y contains infinity or a value too large for dtype\('float64'\)\. 1 of 3 .*row 1",
        ),
        (
            np.array([1.0, 0.25, 0.5]),
            r"^Unknown label type: continuous\. In y 2 of 3 .* fractions, such as 0\.25, .* row 1, .*qcut",
        ),
        (None, "requires y to be passed, but the target y is None"),
        ([], "y is empty; labels are needed"),
        (pl.Series([], dtype=pl.Enum(LEVELS)), "y is empty; labels are needed"),
        (["1", "2", "10"], "y holds strings, whose order must be given"),
        ([1, "a"], r"Unknown label type: mixed.*\{'int': 1, 'str': 'a'\}"),
        ([True, 2], r"Unknown label type: mixed.*\{'bool': True, 'int': 2\}"),
        (np.array([b"a"]), "Unknown label type: bytes8"),
        (np.array(["2020-01-01"], dtype="M8[D]"), r"Unknown label type: datetime64\[D\].*astype\(str\)"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "Unknown label type: datetime64"),
        ([datetime.date(2020, 1, 1)], "Unknown label type: date. .*order must be given"),
        ([[1], [2, 3]], r"Unknown label type: list. .*found \[1\]"),
        (np.array([1j]), "Complex data not supported"),
        (np.eye(2), r"y should be a 1d array, got an array of shape \(2, 2\) instead\. .*y.argmax"),
        (pd.DataFrame({"a": [1], "b": [2]}), r"y should be a 1d array.*columns \['a', 'b'\]"),
        (3, r"y should be a 1d array"),
        ("low", r"y should be a 1d array"),
    ],
)
def test_what_is_not_a_column_of_labels_is_refused(y, wanted):
    with pytest.raises(ValueError, match=wanted):
        encode_labels(y)


def test_sparse_labels_are_refused():
    with pytest.raises(TypeError, match="dense data is required"):
        encode_labels(sp.csr_array([[1], [2]]))


@pytest.mark.parametrize(
    ("classes", "wanted"),
    [
        (["a"], r"classes holds 1 label \['a'\]; at least 2 are needed"),
        ([], "classes is empty"),
        (["a", "b", "a", "b", "c"], r"classes holds \['a', 'b'\] more than once"),
        ({"a", "b"}, "classes must be a sequence of labels, lowest first; got set"),
        ("ab", "classes must be a sequence of labels, lowest first; got str 'ab'"),
        (3, "classes must be a sequence"),
        ([["a", "b"]], "classes must be a sequence"),
        (["a", None], "Input classes contains NaN"),
        (["a", "c"], r"1 label\(s\) not in classes: \['b'\]. classes is \['a', 'c'\]"),
        ([1, 2], r"y holds strings, such as 'a', but classes holds numbers, \[1, 2\]; the same type"),
    ],
)
def test_bad_classes_are_refused(classes, wanted):
    for y in (["a", "b"], pd.Categorical(["a", "b"], ordered=True)):
        with pytest.raises(ValueError, match=wanted):
            encode_labels(y, classes=classes)


@given(st.lists(int64, min_size=1, unique=True), st.lists(int64, min_size=1))
@example([True], [False, True])
def test_union_of_numbers_is_sorted_and_complete(classes, y):
    assert ordered_union(sorted(classes), y).tolist() == sorted({*classes, *y})


@pytest.mark.parametrize(
    ("function", "y", "classes", "message"),
    [
        (ordered_union, ["low", "huge"], LEVELS, r"1 label\(s\) not in classes: \['huge'\]"),
        (ordered_union, [1, 5], [3, 2, 1], r"1 label\(s\) not in classes: \[5\]"),
        (ordered_union, ["a"], [1, 2], "y holds strings"),
        (rank_labels, range(100), [1, 2], r"98 label\(s\) not in classes: \[0, 3, 4.*… 88 more\]"),
        (rank_labels, [1, 2], ["1", "2"], "Convert y or classes"),
        (rank_labels, [0, 1], [False, True], "Convert y or classes"),
        (rank_labels, [True, False], [0, 1], "Convert y or classes"),
    ],
)
def test_labels_without_a_place_are_refused(function, y, classes, message):
    with pytest.raises(ValueError, match=message):
        function(y=y, classes=classes)


@given(labels_with_order(), st.data())
def test_weightless_rows_count_as_absent(case, data):
    y, levels = case
    labels = encode_labels(y, classes=levels)
    weight = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=len(y), max_size=len(y))))
    kept = np.unique(labels.codes[weight > 0])
    if len(kept) < 2:
        with pytest.raises(ValueError, match="at least 2 are needed"):
            observed_levels(labels, weight)
    else:
        assert_array_equal(observed_levels(labels, weight), kept)
        without_the_rows = OrderedLabels(labels.classes, labels.codes[weight > 0])
        assert_array_equal(observed_levels(without_the_rows), kept)


@pytest.mark.parametrize(
    ("y", "classes", "weight", "found"),
    [
        ([3, 3], None, None, r"1 class with positive weight \[3\]"),
        (["low", "high"], LEVELS, np.array([0.0, 1.0]), r"1 class with positive weight \['high'\]"),
        ([1, 2], None, np.zeros(2), r"0 classes with positive weight \[\]"),
    ],
)
def test_a_single_class_is_named(y, classes, weight, found):
    with pytest.raises(ValueError, match=f"y holds {found}"):
        observed_levels(encode_labels(y, classes=classes), weight)
