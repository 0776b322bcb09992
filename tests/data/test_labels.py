"""Laws and refusals of ordered labels."""

import datetime
import enum
import re
import subprocess
import sys
import time

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from isbor.data.labels import OrderedLabels, encode_labels, observed_levels, ordered_union, rank_labels

LEVELS = ["low", "medium", "high"]  # alphabetical order would be high, low, medium
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


# Laws


@given(numbers)
def test_numbers_round_trip_and_rank_by_size(y):
    labels = encode_labels(y)
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


@given(numbers, st.randoms(use_true_random=False))
def test_permuting_rows_commutes_with_encoding(y, random):
    rows = random.sample(range(len(y)), len(y))
    labels, permuted = encode_labels(np.array(y)), encode_labels(np.array(y)[rows])
    assert_array_equal(permuted.classes, labels.classes)
    assert_array_equal(permuted.codes, labels.codes[rows])


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(1, 9), st.integers(-99, 99))
def test_increasing_relabelling_leaves_codes_alone(y, scale, shift):
    assert_array_equal(encode_labels(np.array(y) * scale + shift).codes, encode_labels(y).codes)


@given(labels_with_order())
def test_reversing_the_order_reverses_the_codes(case):
    y, levels = case
    reversed_codes = encode_labels(y, classes=levels[::-1]).codes
    assert_array_equal(reversed_codes, len(levels) - 1 - encode_labels(y, classes=levels).codes)


# Types in, types out


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64", "float32", "float64", "bool"])
def test_number_types_are_kept(dtype):
    y = np.array([7, 0, 7]).astype(dtype)
    assert encode_labels(y).classes.dtype == y.dtype
    assert_array_equal(encode_labels(y).codes, [1, 0, 1])


@pytest.mark.parametrize(
    "y",
    [
        ["low", "high", "low"],
        ("low", "high", "low"),
        np.array(["low", "high", "low"]),
        np.array(["low", "high", "low"], dtype=object),
        np.array(["low", "high", "low"], dtype=NUMPY_STRING),
        pd.Series(["low", "high", "low"]),
        pd.Series(["low", "high", "low"], dtype=object),
        pd.Index(["low", "high", "low"]),
        pd.Series(["low", "high", "low"], dtype="category"),
        pl.Series(["low", "high", "low"]),
        pl.Series(["low", "high", "low"], dtype=pl.Categorical),
        nw.from_native(pl.Series(["low", "high", "low"]), series_only=True),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}-{getattr(y, 'dtype', '')}",
)
def test_strings_need_an_order_and_take_the_one_given(y):
    labels = encode_labels(y, classes=LEVELS)
    assert_array_equal(labels.codes, [0, 2, 0])
    assert labels.classes.dtype.kind == "U"
    assert decoded(labels) == ["low", "high", "low"]
    shown = re.escape("classes=['high', 'low']  # lowest first: put these in order")
    with pytest.raises(ValueError, match=shown):
        encode_labels(y)
    with pytest.raises(ValueError, match=r"ordered categorical \(pandas.Categorical\(..., ordered=True\)"):
        encode_labels(y)


@pytest.mark.parametrize(
    "classes",
    [tuple(LEVELS), np.array(LEVELS), np.array(LEVELS, dtype=object), pd.Index(LEVELS), pl.Series(LEVELS)],
    ids=lambda c: type(c).__module__,
)
def test_classes_may_be_any_sequence(classes):
    labels = encode_labels(["high", "low"], classes=classes)
    assert labels.classes.tolist() == LEVELS
    assert_array_equal(labels.codes, [2, 0])


def test_classes_may_be_a_range():
    assert_array_equal(encode_labels([3, 1], classes=range(1, 6)).codes, [2, 0])


def test_classes_are_copied():
    given_order = np.array([1, 2, 3])
    labels = encode_labels([1, 2], classes=given_order)
    given_order[:] = 0
    assert labels.classes.tolist() == [1, 2, 3]


def test_numeric_strings_are_strings():
    with pytest.raises(ValueError, match=r"y holds strings, whose order must be given"):
        encode_labels(["1", "2", "10"])
    assert decoded(encode_labels(["10", "2"], classes=["1", "2", "10"])) == ["10", "2"]


def test_polars_enum_keeps_unseen_levels():
    labels = encode_labels(pl.Series(["high", "low"], dtype=pl.Enum(LEVELS)))
    assert labels.classes.tolist() == LEVELS
    assert_array_equal(labels.codes, [2, 0])


def test_unordered_categorical_of_numbers_is_its_numbers():
    y = pd.Series(pd.Categorical([3, 1, 3], categories=[3, 2, 1]))
    labels = encode_labels(y)
    assert labels.classes.tolist() == [1, 3]
    assert_array_equal(labels.codes, [1, 0, 1])


def test_classes_win_over_an_ordered_categorical():
    y = pd.Categorical(["low", "high"], categories=["high", "low"], ordered=True)
    labels = encode_labels(y, classes=LEVELS)
    assert labels.classes.tolist() == LEVELS
    assert_array_equal(labels.codes, [0, 2])
    with pytest.raises(ValueError, match=r"1 label\(s\) not in classes: \['high'\]"):
        encode_labels(y, classes=["low", "medium"])


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        (pd.Series([2, 1], dtype="Int64"), "int64"),
        (pd.array([2, 1], dtype="Int64"), "int64"),
        (pd.Series([True, False], dtype="boolean"), "bool"),
        (np.array([2, 1], dtype=object), "int64"),
        (np.array([2, 1.0], dtype=object), "float64"),
        (np.array([np.True_, False], dtype=object), "bool"),
        (pl.Series([2, 1]), "int64"),
        (pl.Series([True, False]), "bool"),
    ],
)
def test_nullable_and_object_columns_become_plain_arrays(y, dtype):
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


def test_integers_and_floats_compare_by_value():
    assert_array_equal(encode_labels([1.0, 3.0], classes=[1, 2, 3]).codes, [0, 2])
    assert_array_equal(encode_labels([1, 3], classes=[1.0, 2.5, 3.0]).codes, [0, 2])


def test_half_steps_are_levels_if_listed():
    assert_array_equal(encode_labels([0.5, 1.5], classes=[0.5, 1.0, 1.5]).codes, [0, 2])


def test_column_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        labels = encode_labels(np.array([[2], [1]]))
    assert_array_equal(labels.codes, [1, 0])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"size": pd.Categorical(["high", "low"], LEVELS, ordered=True)}),
        pl.DataFrame({"size": pl.Series(["high", "low"], dtype=pl.Enum(LEVELS))}),
    ],
    ids=["pandas", "polars"],
)
def test_frame_of_one_column_keeps_its_order(frame):
    with pytest.warns(DataConversionWarning, match=r"frame\['size'\]"):
        labels = encode_labels(frame)
    assert labels.classes.tolist() == LEVELS


def test_data_frame_libraries_need_not_be_installed():
    code = (
        "import sys; sys.modules.update(pandas=None, polars=None)  # None: an import fails\n"
        "from isbor.data.labels import encode_labels; print(encode_labels(['b', 'a'], ['a', 'b']).codes)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[1 0]"


def test_a_million_integers_are_quick():
    y = np.random.default_rng(0).integers(0, 10, 10**6)

    def seconds():
        start = time.perf_counter()
        encode_labels(y)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.5  # 0.05 s at rest; a loop over rows takes longer


# Refusals


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
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}-{getattr(y, 'dtype', '')}",
)
def test_missing_labels_are_counted_and_placed(y):
    with pytest.raises(ValueError, match=r"Input y contains NaN\. 2 of 4 labels are missing .* row 2"):
        encode_labels(y)


def test_infinite_labels_are_counted_and_placed():
    wanted = r"Input y contains infinity or a value too large for dtype\('float64'\)\. 1 of 3 .*row 1"
    with pytest.raises(ValueError, match=wanted):
        encode_labels([1.0, -np.inf, 2.0])


def test_continuous_labels_are_refused_with_an_example():
    wanted = r"^Unknown label type: continuous\. In y 2 of 3 .* fractions, such as 0\.25, .* row 1, .*qcut"
    with pytest.raises(ValueError, match=wanted):
        encode_labels(np.array([1.0, 0.25, 0.5]))


def test_absent_labels_are_refused():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        encode_labels(None)


@pytest.mark.parametrize("y", [[], np.array([], dtype=int), pl.Series([], dtype=pl.Enum(LEVELS))], ids=type)
def test_empty_labels_are_refused(y):
    with pytest.raises(ValueError, match="y is empty; labels are needed"):
        encode_labels(y)


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        ([1, "a"], r"Unknown label type: mixed.*\{'int': 1, 'str': 'a'\}"),
        ([True, 2], r"Unknown label type: mixed.*\{'bool': True, 'int': 2\}"),
        (np.array([b"a"]), "Unknown label type: bytes8"),
        (np.array(["2020-01-01"], dtype="M8[D]"), r"Unknown label type: datetime64\[D\].*astype\(str\)"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "Unknown label type: datetime64"),
        ([datetime.date(2020, 1, 1)], "Unknown label type: date. .*order must be given"),
        ([[1], [2, 3]], r"Unknown label type: list. .*found \[1\]"),
        ([{1}, {2}], r"Unknown label type: set. .*found \{1\}"),
        (np.array([1j]), "Complex data not supported"),
        (np.eye(2), r"y should be a 1d array, got an array of shape \(2, 2\)"),
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
    with pytest.raises(ValueError, match=wanted):
        encode_labels(["a", "b"], classes=classes)


@pytest.mark.parametrize(
    ("y", "classes"), [([1, 2], ["1", "2"]), ([0, 1], [False, True]), ([True, False], [0, 1])]
)
def test_labels_of_another_type_are_refused(y, classes):
    with pytest.raises(ValueError, match="Convert y or classes"):
        rank_labels(y, classes)


def test_unknown_labels_are_named_a_few_at_a_time():
    with pytest.raises(ValueError, match=r"98 label\(s\) not in classes: \[0, 3, 4.*… 88 more\]"):
        rank_labels(range(100), [1, 2])


# Union of orders


@given(st.lists(int64, min_size=1, unique=True), st.lists(int64, min_size=1))
def test_union_of_numbers_is_sorted_and_complete(classes, y):
    assert ordered_union(sorted(classes), y).tolist() == sorted({*classes, *y})


@given(labels_with_order())
def test_union_with_known_labels_is_the_order_itself(case):
    y, levels = case
    assert ordered_union(levels, y).tolist() == levels


def test_union_of_booleans():
    assert ordered_union([True], [False, True]).tolist() == [False, True]


@pytest.mark.parametrize(("classes", "y"), [(LEVELS, ["low", "huge"]), ([3, 2, 1], [1, 5])])
def test_union_refuses_a_label_without_a_place(classes, y):
    with pytest.raises(ValueError, match=r"1 label\(s\) not in classes: \[('huge'|5)\]"):
        ordered_union(classes, y)


def test_union_refuses_labels_of_another_type():
    with pytest.raises(ValueError, match="y holds strings"):
        ordered_union([1, 2], ["a"])


# Observed levels


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
        assert_array_equal(
            observed_levels(OrderedLabels(labels.classes, labels.codes[weight > 0])), kept
        )  # as if the rows were gone


def test_a_single_class_is_named():
    with pytest.raises(ValueError, match=r"y holds 1 class with positive weight \[3\]"):
        observed_levels(encode_labels([3, 3]))
    with pytest.raises(ValueError, match=r"y holds 1 class with positive weight \['high'\]"):
        observed_levels(encode_labels(["low", "high"], classes=LEVELS), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"y holds 0 classes with positive weight \[\]"):
        observed_levels(encode_labels([1, 2]), np.zeros(2))
