"""Tables to matrices: what columns become, that libraries agree, and what is refused."""

import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from isbor.data.encoding import learn_table


class Model(BaseEstimator):
    """What scikit-learn notes the features in."""


def learn(X, missing="auto"):
    """Return the encoding as a function of tables alone, and the matrix of X."""
    model = Model()
    encoding, matrix = learn_table(model, X, missing)
    return encoding, matrix, lambda table: encoding(model, table)


AGE = [30, None, 50, 40]
COLOR = ["red", "blue", None, "red"]
SIZE = ["S", "L", "L", "S"]
OK = [True, False, None, True]


def pandas_table():
    size = pd.Categorical(SIZE, ["S", "M", "L"], ordered=True)
    return pd.DataFrame(
        {
            "age": pd.array(AGE, dtype="Int64"),
            "color": COLOR,
            "size": size,
            "ok": pd.array(OK, dtype="boolean"),
            "n": [1.0, 2.0, 3.0, 4.0],
        }
    )


def polars_table():
    return pl.DataFrame({"age": AGE, "color": COLOR, "size": SIZE, "ok": OK, "n": [1.0, 2.0, 3.0, 4.0]}).cast(
        {"size": pl.Enum(["S", "M", "L"])}
    )


def arrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({"age": AGE, "color": COLOR, "size": SIZE, "ok": OK, "n": [1.0, 2.0, 3.0, 4.0]})


NAMES = (
    *("age", "age missing", "color=blue", "color=red", "color missing", "color unseen"),
    *("size=S", "size=L", "size unseen", "ok=False", "ok=True", "ok missing", "ok unseen", "n"),
)
MATRIX = np.array(
    [
        [30, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1],
        [40, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 2],
        [50, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 3],
        [40, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 4],
    ],
    dtype=float,
)


# --- What columns become -----------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [pandas_table, polars_table])
def test_numbers_and_categories_become_columns(table):
    encoding, matrix, encode = learn(table())
    assert encoding.names == NAMES
    assert_array_equal(matrix, MATRIX)
    assert matrix.dtype == np.float64 and matrix.flags.c_contiguous
    assert_array_equal(encode(table()), MATRIX)
    assert_array_equal(encoding.feature, [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4])
    assert_array_equal(encoding.categorical, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    assert not encoding.is_identity


def test_arrow_tables_are_read_as_well():
    encoding, matrix, encode = learn(arrow_table())
    column = [NAMES.index(name) for name in encoding.names]  # strings are sorted: size=L first
    assert_array_equal(matrix, MATRIX[:, column])
    assert_array_equal(encode(arrow_table()), matrix)


def test_a_model_reads_the_tables_of_another_library():
    for train, others in ((pandas_table, [polars_table]), (polars_table, [pandas_table])):
        _, _, encode = learn(train())
        for other in others:
            assert_array_equal(encode(other()), MATRIX)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None, "b"], dtype="str"),
        pd.Series(["b", "a", None, "b"], dtype="string"),
        pd.Series(["b", "a", None, "b"], dtype=object),
        pd.Series(["b", "a", np.nan, "b"], dtype=object),
        pd.Series(["b", "a", pd.NA, "b"], dtype=object),
        pd.Series(["b", "a", None, "b"], dtype="category"),
        pl.Series(["b", "a", None, "b"]),
        pl.Series(["b", "a", None, "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", None, "b"], dtype=pl.Enum(["a", "b", "c"])),
    ],
    ids=str,
)
def test_strings_in_all_their_types_give_the_same_columns(column):
    frame = pd.DataFrame({"x": column}) if isinstance(column, pd.Series) else pl.DataFrame({"x": column})
    encoding, matrix, _ = learn(frame)
    assert encoding.names == ("x=a", "x=b", "x missing", "x unseen")
    assert_array_equal(matrix, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None, 4], dtype="Int8"),
        pd.Series([1, None, 4], dtype="Float64"),
        pd.Series([1, None, 4], dtype="UInt64"),
        pd.Series([1, np.nan, 4], dtype="float32"),
        pd.Series([1, None, 4.0], dtype=object),
        pd.Series([np.int64(1), pd.NA, Decimal(4)], dtype=object),
        pl.Series([1, None, 4]),
        pl.Series([1.0, np.nan, 4.0]),
        pl.Series(["1", None, "4"]).cast(pl.Decimal(10, 2)),
    ],
    ids=str,
)
def test_numbers_in_all_their_types_give_the_same_columns(column):
    # With a category beside them, and alone.
    frame = pd.DataFrame({"x": column}) if isinstance(column, pd.Series) else pl.DataFrame({"x": column})
    beside = frame.assign(c="a") if isinstance(frame, pd.DataFrame) else frame.with_columns(c=pl.lit("a"))
    expected = np.array([[1, 0], [2.5, 1], [4, 0]])
    assert_array_equal(learn(frame)[1], expected)
    assert_array_equal(learn(beside)[1], np.column_stack([expected, np.ones(3), np.zeros(3)]))


def test_declared_levels_keep_their_order_and_others_are_sorted():
    frame = pd.DataFrame({"x": ["mid", "high", "low", "mid"]})
    assert learn(frame)[0].categories == (("high", "low", "mid"),)
    order = ["none", "low", "mid", "high"]
    for ordered in (False, True):
        declared = frame.assign(x=pd.Categorical(frame["x"], order, ordered=ordered))
        assert learn(declared)[0].categories == (("low", "mid", "high"),)  # "none" does not occur
    assert learn(pl.DataFrame(frame.to_dict("list"), schema={"x": pl.Enum(order)}))[0].categories == (
        ("low", "mid", "high"),
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_ordered_levels_have_a_column_of_ranks(library):
    grades, order = ["high", "low", None, "mid", "low"], ["low", "unused", "mid", "high"]

    def frame(cells):
        if library == "polars":
            return pl.DataFrame({"grade": cells}, schema={"grade": pl.Enum(order)})
        return pd.DataFrame({"grade": pd.Categorical(cells, order, ordered=True)})

    encoding, matrix, encode = learn(frame(grades))
    *names, marks_missing, marks_unseen = encoding.names
    assert names == ["grade=low", "grade=mid", "grade=high", "grade rank"]
    assert (marks_missing, marks_unseen) == ("grade missing", "grade unseen")
    assert encoding.categorical.tolist() == [True, True, True, False, True, True]
    assert_array_equal(matrix[:, 3], [2.0, 0.0, 0.75, 1.0, 0.0])  # a missing cell has the mean place
    assert_array_equal(encode(frame(["unused", "mid"]))[:, 3], [0.75, 1.0])
    plain = learn(pd.DataFrame({"grade": pd.Categorical(grades, order)}))[0]
    assert "grade rank" not in plain.names
    two = learn(pd.DataFrame({"x": pd.Categorical(["a", "b"], ordered=True)}))[0]
    assert two.names == ("x=a", "x=b", "x unseen")


def test_polars_categories_are_numbered_by_appearance_which_must_not_matter():
    for rows in (["p", "r", "q"], ["q", "p", "r"]):
        frame = pl.DataFrame({"x": rows}, schema={"x": pl.Categorical})
        assert learn(frame)[0].categories == (("p", "q", "r"),)


def test_levels_may_be_numbers_booleans_and_intervals():
    frame = pd.DataFrame(
        {
            "code": pd.Categorical([3, 1, 10, 1]),
            "flag": pd.Series([True, None, False, True], dtype=object),
            "bin": pd.cut([0.0, 1.0, 9.0, 10.0], [-1, 5, 10]),
        }
    )
    encoding, matrix, encode = learn(frame)
    assert encoding.categories == ((1, 3, 10), (False, True), ("(-1, 5]", "(5, 10]"))
    assert_array_equal(
        matrix,
        [
            [0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0],
            [1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0],
            [0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0],
            [1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0],
        ],
    )
    # Numbers need not be declared again, and a missing cell makes floats of integers.
    again = encode(frame.assign(code=[3.0, 1.0, np.nan, 7.0], bin=frame["bin"].astype(str)))
    assert_array_equal(again[:, :4], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    assert_array_equal(again[:, 4:], matrix[:, 4:])


@pytest.mark.parametrize("library", [pd, pl])
def test_new_levels_and_unexpected_missing_cells_are_marked(library):
    _, _, encode = learn(library.DataFrame({"x": ["a", "b"], "n": [1.0, 3.0], "f": [True, False]}))
    table = library.DataFrame({"x": ["new", None, "b"], "n": [5.0, None, 7.0], "f": [None, True, None]})
    assert_array_equal(encode(table), [[0, 0, 1, 5, 0, 0, 1], [0, 0, 1, 2, 0, 1, 0], [0, 1, 0, 7, 0, 0, 1]])


def test_new_levels_of_a_declared_type_are_marked():
    train = pl.DataFrame({"x": ["a", "b"]}, schema={"x": pl.Enum(["a", "b"])})
    later = pl.DataFrame({"x": ["c", "b"]}, schema={"x": pl.Enum(["c", "b"])})
    assert_array_equal(learn(train)[2](later), [[0, 0, 1], [0, 1, 0]])
    train = pd.DataFrame({"x": pd.Categorical(["a", "b"], ordered=True)})
    later = pd.DataFrame({"x": pd.Categorical(["c", "b"], ["c", "b"], ordered=True)})
    assert_array_equal(learn(train)[2](later), [[0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "cells", [[None], [np.nan], pd.array([None], dtype="string"), pd.Categorical([None])]
)
def test_a_table_may_hold_nothing_but_missing_cells(cells):
    _, _, encode = learn(pd.DataFrame({"x": ["a", None], "n": [1.0, 3.0]}))
    assert_array_equal(encode(pd.DataFrame({"x": cells, "n": cells})), [[0, 1, 0, 2]])


def test_a_category_that_is_never_present_in_training_is_only_missing():
    frame = pd.DataFrame({"x": pd.Categorical([None, None], ["a"])})
    encoding, matrix, encode = learn(frame)
    assert encoding.names == ("x missing", "x unseen")
    assert_array_equal(matrix, [[1, 0], [1, 0]])
    assert_array_equal(encode(pd.DataFrame({"x": ["a", None]})), [[0, 1], [1, 0]])


@pytest.mark.parametrize("ordered", [True, False])
def test_weight_means_repetition_and_weight_zero_means_later(ordered):
    cells = [3.0, None, 0.1, 0.7, None]
    levels = pd.Categorical(["a", "b", "c", None, "d"], ordered=ordered)
    frame = pd.DataFrame({"n": cells, "x": levels})
    weight = np.array([2.0, 1.0, 3.0, 1.0, 0.0])
    encoding, matrix = learn_table(Model(), frame, weight=weight)
    model = Model()
    repeated, _ = learn_table(model, frame.iloc[np.repeat(range(5), weight.astype(int))])
    assert encoding.names == repeated.names  # neither has a column for "d"
    assert_array_equal(encoding.fill, repeated.fill)
    assert_array_equal(matrix, repeated(model, frame))
    assert_array_equal(matrix[:, -1], [0, 0, 0, 0, 1])


# --- Arrays and frames of numbers --------------------------------------------------------------------------


def test_an_array_without_missing_cells_is_its_own_matrix():
    X = np.random.default_rng(0).normal(size=(20, 3))
    encoding, matrix, encode = learn(X)
    assert encoding.is_identity and matrix is X and encode(X) is X
    assert encoding.names == ("x0", "x1", "x2") and encoding.feature_names is None
    assert_array_equal(encoding.feature, [0, 1, 2])
    assert not encoding.categorical.any()


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_of_numbers_is_the_array_to_the_last_bit(library):
    rng = np.random.default_rng(0)
    columns = {
        "f": rng.normal(size=9),
        "s": rng.normal(size=9).astype(np.float32),
        "i": rng.integers(-(2**62), 2**62, 9),
        "u": rng.integers(0, 255, 9).astype(np.uint8),
    }
    encoding, matrix, _ = learn(library.DataFrame(columns))
    assert encoding.is_identity and encoding.feature_names == ("f", "s", "i", "u")
    assert_array_equal(matrix, np.column_stack([column.astype(float) for column in columns.values()]))


def test_missing_cells_of_arrays_are_encoded_on_request():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 9.0]])
    before = X.copy()
    encoding, matrix, encode = learn(X, missing="indicator")
    assert encoding.names == ("x0", "x0 missing", "x1")
    assert_array_equal(matrix, [[1, 0, 2], [3, 1, 4], [5, 0, 9]])
    assert_array_equal(encode([[np.nan, np.nan]]), [[3, 1, 5]])
    assert_array_equal(X, before)


def test_a_missing_cell_takes_the_mean_where_training_had_none():
    X = np.array([[1.0], [2.0], [6.0]])
    _, _, encode = learn(X, missing="indicator")
    table = np.array([[np.nan], [7.0]])
    assert_array_equal(encode(table), [[3], [7]])
    assert np.isnan(table[0, 0])  # the caller's own


def test_means_do_not_overflow():
    encoding, _, _ = learn(np.array([[1.5e308], [1.7e308], [-1.7e308], [1.5e308]]), missing="indicator")
    assert encoding.fill[0] == pytest.approx(0.75e308)


def test_arrays_of_objects_are_numbers_as_for_scikit_learn():
    encoding, matrix, _ = learn(np.array([[1, 2.5], [3, Decimal(4)]], dtype=object))
    assert encoding.is_identity
    assert_array_equal(matrix, [[1, 2.5], [3, 4]])
    with pytest.raises(ValueError, match="could not convert string to float: 'a': X is an array.*data frame"):
        learn(np.array([["a"], ["b"]], dtype=object))


# --- Laws --------------------------------------------------------------------------------------------------


@st.composite
def tables_and_orders(draw):
    n = draw(st.integers(1, 12))
    rows = lambda cells: st.lists(cells, min_size=n, max_size=n)
    numbers = rows(st.none() | st.floats(-1e6, 1e6)).filter(lambda cells: any(c is not None for c in cells))
    columns = {
        "number": draw(numbers),
        "text": draw(rows(st.none() | st.text(alphabet="abé ", max_size=2))),
        "flag": draw(rows(st.none() | st.booleans())),
    }
    return columns, draw(st.permutations(range(n)))


def as_pandas(columns):
    return pd.DataFrame(columns).astype({"number": "float64", "text": "string", "flag": "boolean"})


def as_polars(columns):
    schema = {"number": pl.Float64, "text": pl.String, "flag": pl.Boolean}
    return pl.DataFrame(columns, schema=schema)


@settings(deadline=None, max_examples=60)
@given(tables_and_orders())
def test_rows_permute_and_libraries_agree(case):
    columns, order = case
    permuted = {name: [cells[i] for i in order] for name, cells in columns.items()}
    encoding, matrix, _ = learn(as_pandas(columns))
    for table in (as_pandas(permuted), as_polars(permuted)):
        other, other_matrix, encode = learn(table)
        assert other.names == encoding.names
        assert_array_equal(other_matrix, matrix[order])
        assert_array_equal(encode(as_polars(columns)), matrix)
    # Each row has one level or is missing.
    for j in (1, 2):
        assert_array_equal(matrix[:, encoding.feature == j].sum(axis=1), 1)


@settings(deadline=None, max_examples=60)
@given(tables_and_orders(), st.integers(1, 12))
def test_rows_are_encoded_one_by_one(case, n):
    columns, _ = case
    _, matrix, encode = learn(as_pandas(columns))
    assert_array_equal(encode(as_pandas(columns)[:n]), matrix[:n])


def test_an_encoding_survives_pickling():
    model = Model()
    encoding, matrix = learn_table(model, pandas_table())
    restored = pickle.loads(pickle.dumps(encoding))
    assert_array_equal(restored(model, polars_table()), matrix)
    assert restored.categories == encoding.categories
    assert {type(level) for levels in encoding.categories if levels for level in levels} == {str, bool}


# --- scikit-learn's contract -------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [pandas_table(), polars_table(), polars_table().select("age", "n")])
def test_features_are_noted_and_compared(table):
    model = Model()
    encoding, _ = learn_table(model, table)
    columns = list(table.columns)
    assert model.n_features_in_ == len(columns) and model.feature_names_in_.tolist() == columns
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*must be in the same order"):
        encoding(model, table[columns[::-1]])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*yet now missing:\n- age"):
        encoding(model, table[columns[1:]])


def test_columns_without_string_names_are_told_by_position():
    frame = pd.DataFrame([["a", 1.0], ["b", np.nan]])
    encoding, _, encode = learn(frame)
    assert encoding.names == ("x0=a", "x0=b", "x0 unseen", "x1", "x1 missing")
    with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2"):
        encode(frame[[0]])
    with pytest.raises(ValueError, match=r"first \(inf\) in row 0, column 1"):
        encode(pd.DataFrame([["a", np.inf]]))


def test_numbers_may_come_as_an_array_and_categories_may_not():
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(learn(pd.DataFrame({"a": [1.0, None]}))[2]([[5.0]]), [[5, 0]])
    _, _, encode = learn(pandas_table())
    with pytest.raises(
        ValueError, match="type ndarray; Model was fitted to a data frame with categories in column 'color'"
    ):
        encode(pandas_table().to_numpy())


def test_empty_tables_are_refused():
    with pytest.raises(
        ValueError, match=r"0 sample\(s\) \(shape=\(0, 5\)\) while a minimum of 1 is required"
    ):
        learn(pandas_table()[:0])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        learn(pandas_table()[["n"]][:0])


# --- What is refused ---------------------------------------------------------------------------------------


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"])
    with pytest.raises(
        ValueError, match="columns with the same name: 'a'; names must be unique. Rename or drop"
    ):
        learn(frame)


def test_identifiers_and_numbers_stored_as_text_are_warned_of():
    frame = pd.DataFrame({"x": [f"{v:.6f}" for v in np.linspace(0, 1, 30)]})
    with pytest.warns(
        UserWarning, match=r"30 different categories.*'0.000000', in column 'x'.*to_numeric.*drop"
    ):
        learn(frame)
    learn(frame[:10])  # few rows may well differ
    learn(pd.DataFrame({"x": [f"{i % 15}" for i in range(30)]}))


def test_missing_cells_of_arrays_are_refused_by_default():
    message = r"NaN or inf in 1 cell\(s\), the first \(NaN\) in row 1, column 0; Model needs .*SimpleImputer"
    with pytest.raises(ValueError, match=message + '.*missing="indicator"'):
        learn(np.array([[1.0], [np.nan]]))
    _, _, encode = learn(np.array([[1.0], [2.0]]))
    with pytest.raises(ValueError, match=message):
        encode(np.array([[1.0], [np.nan]]))


@pytest.mark.parametrize("table", [pandas_table, polars_table])
def test_missing_cells_are_refused_everywhere_on_request(table):
    with pytest.raises(ValueError, match=r"3 cell\(s\), the first \(NaN\) in row 1, column 'age'"):
        learn(table(), missing="error")
    _, _, encode = learn(table()[["color", "n"]][:2], missing="error")
    with pytest.raises(ValueError, match=r"1 cell\(s\), the first \(NaN\) in row 2, column 'color'"):
        encode(table()[["color", "n"]])


@pytest.mark.parametrize("missing", ["auto", "indicator", "error"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_numbers_are_always_refused(missing, value):
    good = pd.DataFrame({"c": ["a", "b"], "n": [1.0, 2.0], "k": pd.Categorical([1, 2])})
    message = r"first \(inf\) in row 1, column 'n'; Model needs finite numbers. Replace infinite"
    for columns in (["c", "n"], ["n"]):
        _, _, encode = learn(good[columns], missing)
        bad = good[columns].assign(n=[1.0, value])
        with pytest.raises(ValueError, match=message):
            learn(bad, missing)
        with pytest.raises(ValueError, match=message):
            encode(bad)
    with pytest.raises(ValueError, match=r"first \(inf\) in row 1, column 'k'"):
        learn(good, missing)[2](good.assign(k=[1.0, value]))
    with pytest.raises(ValueError, match=r"first \(inf\) in row 1, column 0"):
        learn(np.array([[1.0], [value]]), missing)


def test_infinity_is_found_among_missing_cells():
    with pytest.raises(
        ValueError, match=r"contains inf in 1 cell\(s\), the first \(inf\) in row 2, column 'n'"
    ):
        learn(pd.DataFrame({"n": [np.nan, 1.0, np.inf]}))


@pytest.mark.parametrize(
    "table", [{"a": [1.0, 2.0], "b": [np.nan, np.nan]}, {"a": ["x", "y"], "b": [np.nan] * 2}]
)
def test_a_number_that_is_never_present_is_refused(table):
    with pytest.raises(ValueError, match="no value in column 'b': all 2 cells are missing. Drop the column"):
        learn(pd.DataFrame(table))
    with pytest.raises(ValueError, match="no value in column 'b'"):
        learn(pl.DataFrame({"a": table["a"], "b": [None, None]}))


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pd.Series(pd.to_datetime(["2020-01-01", None])), "Datetime"),
        (pd.Series(pd.to_timedelta([1, 2], unit="s")), "Duration"),
        (pd.Series([dt.date(2020, 1, 1), None]), r"date, such as datetime.date\(2020, 1, 1\)"),
        (pd.Series([[1, 2], [3]]), r"list, such as \[3\]"),
        (pd.Series([{"a": 1}, None]), "dict, such as"),
        (pd.Series([b"a", b"b"]), "bytes, such as b'b'"),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), "Period"),
        (pd.Series([1j, 2j]), "complex"),
        (pl.Series([dt.date(2020, 1, 1), None]), "Date"),
        (pl.Series([dt.time(12), None]), "Time"),
        (pl.Series([[1], [2]]), "List"),
        (pl.Series([{"a": 1}, {"a": 2}]), "Struct"),
    ],
)
def test_other_types_are_named_with_their_column(column, found):
    library = pd if isinstance(column, pd.Series) else pl
    good = library.DataFrame({"n": [1.0, 2.0], "when": ["a", "b"]})
    bad = library.DataFrame({"n": [1.0, 2.0], "when": column})
    message = f"type {found}.* in column 'when'; numbers, booleans, strings or categories are needed.*drop"
    with pytest.raises(ValueError, match=message):
        learn(bad)
    with pytest.raises(ValueError, match=message):
        learn(good)[2](bad)


@pytest.mark.parametrize(
    "cells", [[1, "a"], [True, "a"], [True, 2, None], pd.Categorical([1, "a"]), pd.Categorical([True, 2])]
)
def test_mixtures_of_types_are_refused(cells):
    with pytest.raises(
        ValueError, match="several types in column 'x', such as .* and .*; one type is needed"
    ):
        learn(pd.DataFrame({"x": pd.Series(cells)}))


@pytest.mark.parametrize(
    ("train", "later", "message"),
    [
        ([1.0, 2.0], ["1", "2"], "holds categories, such as '1', in column 'x'; in training it held numbers"),
        (
            ["1", "2"],
            [1.0, 2.0],
            "holds numbers, such as 1.0, in column 'x'; in training it held strings, such",
        ),
        ([True, False], [1, 0], "holds numbers, such as 0.0, .* it held booleans, such as False. Convert"),
        ([True, False], ["True", "False"], "holds strings, such as 'False', .* it held booleans"),
        (pd.Categorical([1, 2]), ["1", "2"], "holds strings, such as '1', .* it held numbers, such as 1"),
    ],
)
def test_a_column_may_not_change_its_kind(train, later, message):
    with pytest.raises(ValueError, match=message):
        learn(pd.DataFrame({"x": train}))[2](pd.DataFrame({"x": later}))


def test_booleans_serve_as_numbers():
    _, _, encode = learn(pd.DataFrame({"x": [0, 1, 3]}))
    later = pd.DataFrame({"x": pd.array([True, False, None], dtype="boolean")})
    assert_array_equal(encode(later), [[1], [0], [4 / 3]])


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="missing is 'drop'; one of 'auto', 'indicator', 'error' is needed"):
        learn(np.ones((2, 2)), missing="drop")
    with pytest.raises(TypeError, match=r"type LazyFrame, .* not rows; .* Pass X\.collect\(\)"):
        learn(polars_table().lazy())
