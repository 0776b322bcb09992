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

from isbor.data.encoding import learn_table


def learn(X, missing="auto"):
    """Return the encoding, the matrix of X, and the encoding as a function of tables alone."""
    encoding, matrix = learn_table("Model", X, missing)
    return encoding, matrix, lambda table: encoding("Model", table)


COLUMNS = {
    "age": [30, None, 50, 40],
    "color": ["red", "blue", None, "red"],
    "size": ["S", "L", "L", "S"],
    "ok": [True, False, None, True],
    "n": [1.0, 2.0, 3.0, 4.0],
}
SIZES = ["S", "M", "L"]
LETTERS = ["b", "a", None, "b"]


def pandas_table():
    size = pd.CategoricalDtype(SIZES, ordered=True)
    return pd.DataFrame(COLUMNS).astype({"age": "Int64", "size": size, "ok": "boolean"})


def polars_table():
    return pl.DataFrame(COLUMNS).cast({"size": pl.Enum(SIZES)})


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


@pytest.mark.parametrize("table", [pandas_table, polars_table])
def test_numbers_and_categories_become_columns(table):
    encoding, matrix, encode = learn(table())
    assert encoding.names == NAMES
    assert_array_equal(matrix, MATRIX)
    assert matrix.dtype == np.float64 and matrix.flags.c_contiguous
    for later in (pandas_table, polars_table):
        assert_array_equal(encode(later()), MATRIX)
    assert_array_equal(encoding.feature, [0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4])
    assert_array_equal(encoding.categorical, [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    assert not encoding.is_identity


def test_arrow_tables_are_read_as_well():
    table = pytest.importorskip("pyarrow").table(COLUMNS)
    encoding, matrix, encode = learn(table)
    column = [NAMES.index(name) for name in encoding.names]  # strings are sorted: size=L first
    assert_array_equal(matrix, MATRIX[:, column])
    assert_array_equal(encode(table), matrix)


@pytest.mark.parametrize(
    "column",
    [
        *(pd.Series(LETTERS, dtype=dtype) for dtype in ("str", "string", object, "category")),
        *(pd.Series(["b", "a", missing, "b"], dtype=object) for missing in (np.nan, pd.NA)),
        *(pl.Series(LETTERS, dtype=dtype) for dtype in (None, pl.Categorical, pl.Enum(["a", "b", "c"]))),
    ],
    ids=str,
)
def test_strings_in_all_their_types_give_the_same_columns(column):
    encoding, matrix, _ = learn(column.to_frame("x"))
    assert encoding.names == ("x=a", "x=b", "x missing", "x unseen")
    assert_array_equal(matrix, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])


@pytest.mark.parametrize(
    "column",
    [
        *(pd.Series([1, None, 4], dtype=dtype) for dtype in ("Int8", "Float64", "UInt64")),
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
    frame = column.to_frame("x")
    beside = frame.assign(c="a") if isinstance(frame, pd.DataFrame) else frame.with_columns(c=pl.lit("a"))
    expected = np.array([[1, 0], [2.5, 1], [4, 0]])
    assert_array_equal(learn(frame)[1], expected)
    assert_array_equal(learn(beside)[1], np.column_stack([expected, np.ones(3), np.zeros(3)]))


ORDER = ["none", "low", "mid", "high"]  # "none" does not occur


@pytest.mark.parametrize(
    ("as_column", "categories"),
    [
        (lambda cells: pd.Series(cells), ("high", "low", "mid")),
        (lambda cells: pd.Series(pd.Categorical(cells, ORDER)), ("low", "mid", "high")),
        (lambda cells: pd.Series(pd.Categorical(cells, ORDER, ordered=True)), ("low", "mid", "high")),
        (lambda cells: pl.Series(cells, dtype=pl.Enum(ORDER)), ("low", "mid", "high")),
        # Polars numbers these as they come, which must not matter.
        (lambda cells: pl.Series(cells, dtype=pl.Categorical), ("high", "low", "mid")),
    ],
)
def test_declared_categories_keep_their_order_and_others_are_sorted(as_column, categories):
    for cells in (["mid", "high", "low", "mid"], ["low", "mid", "high"]):
        assert learn(as_column(cells).to_frame("x"))[0].categories == (categories,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_ordered_categories_have_a_column_of_ranks(library):
    grades, order = ["high", "low", None, "mid", "low"], ["low", "unused", "mid", "high"]

    def frame(cells):
        if library == "polars":
            return pl.DataFrame({"grade": cells}, schema={"grade": pl.Enum(order)})
        return pd.DataFrame({"grade": pd.Categorical(cells, order, ordered=True)})

    encoding, matrix, encode = learn(frame(grades))
    levels = ["grade=low", "grade=mid", "grade=high"]
    assert encoding.names == (*levels, "grade rank", "grade missing", "grade unseen")
    assert encoding.categorical.tolist() == [True, True, True, False, True, True]
    assert_array_equal(matrix[:, 3], [2.0, 0.0, 0.75, 1.0, 0.0])  # a missing cell has the mean place
    assert_array_equal(encode(frame(["unused", "mid"]))[:, 3], [0.75, 1.0])
    plain = learn(pd.DataFrame({"grade": pd.Categorical(grades, order)}))[0]
    assert "grade rank" not in plain.names
    two = learn(pd.DataFrame({"x": pd.Categorical(["a", "b"], ordered=True)}))[0]
    assert two.names == ("x=a", "x=b", "x unseen")


def test_categories_may_be_numbers_booleans_and_intervals():
    frame = pd.DataFrame(
        {
            "code": pd.Categorical([3, 1, 10, 1]),
            "flag": pd.Series([True, None, False, True], dtype=object),
            "bin": pd.cut([0.0, 1.0, 9.0, 10.0], [-1, 5, 10]),
        }
    )
    encoding, matrix, encode = learn(frame)
    assert encoding.categories == ((1, 3, 10), (False, True), ("(-1, 5]", "(5, 10]"))
    assert_array_equal(matrix[:, :4], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]])
    assert_array_equal(matrix[:, 4:8], [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    assert_array_equal(matrix[:, 8:], [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]])
    # Numbers need not be declared again, and a missing cell makes floats of integers.
    again = encode(frame.assign(code=[3.0, 1.0, np.nan, 7.0], bin=frame["bin"].astype(str)))
    assert_array_equal(again[:, :4], [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    assert_array_equal(again[:, 4:], matrix[:, 4:])


@pytest.mark.parametrize("library", [pd, pl])
def test_unseen_categories_and_unexpected_missing_cells_are_marked(library):
    _, _, encode = learn(library.DataFrame({"x": ["a", "b"], "n": [1.0, 3.0], "f": [True, False]}))
    table = library.DataFrame({"x": ["new", None, "b"], "n": [5.0, None, 7.0], "f": [None, True, None]})
    assert_array_equal(encode(table), [[0, 0, 1, 5, 0, 0, 1], [0, 0, 1, 2, 0, 1, 0], [0, 1, 0, 7, 0, 0, 1]])


@pytest.mark.parametrize(
    "as_column",
    [
        lambda cells: pl.Series(cells, dtype=pl.Enum(cells)),
        lambda cells: pd.Series(pd.Categorical(cells, cells, ordered=True)),
    ],
    ids=["polars", "pandas"],
)
def test_unseen_categories_of_a_declared_type_are_marked(as_column):
    _, _, encode = learn(as_column(["a", "b"]).to_frame("x"))
    assert_array_equal(encode(as_column(["c", "b"]).to_frame("x")), [[0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("cells", [[None], [np.nan], pd.array([None], "string"), pd.Categorical([None])])
def test_a_table_may_hold_nothing_but_missing_cells(cells):
    _, _, encode = learn(pd.DataFrame({"x": ["a", None], "n": [1.0, 3.0]}))
    assert_array_equal(encode(pd.DataFrame({"x": cells, "n": cells})), [[0, 1, 0, 2]])


def test_a_category_that_is_never_present_in_training_is_only_missing():
    encoding, matrix, encode = learn(pd.DataFrame({"x": pd.Categorical([None, None], ["a"])}))
    assert encoding.names == ("x missing", "x unseen")
    assert_array_equal(matrix, [[1, 0], [1, 0]])
    assert_array_equal(encode(pd.DataFrame({"x": ["a", None]})), [[0, 1], [1, 0]])


@pytest.mark.parametrize("ordered", [True, False])
def test_weight_means_repetition_and_weight_zero_means_later(ordered):
    x = pd.Categorical(["a", "b", "c", None, "d"], ordered=ordered)
    frame = pd.DataFrame({"n": [3.0, None, 0.1, 0.7, None], "x": x})
    weight = np.array([2.0, 1.0, 3.0, 1.0, 0.0])
    encoding, matrix = learn_table("Model", frame, weight=weight)
    repeated, _, encode = learn(frame.iloc[np.repeat(range(5), weight.astype(int))])
    assert encoding.names == repeated.names  # neither has a column for "d"
    assert_array_equal(encoding.fill, repeated.fill)
    assert_array_equal(matrix, encode(frame))
    assert_array_equal(matrix[:, -1], [0, 0, 0, 0, 1])


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
    encoding, matrix, encode = learn(X, missing="indicator")
    assert encoding.names == ("x0", "x0 missing", "x1")
    assert_array_equal(matrix, [[1, 0, 2], [3, 1, 4], [5, 0, 9]])
    assert_array_equal(X, [[1, 2], [np.nan, 4], [5, 9]])  # the caller's own
    assert_array_equal(encode([[np.nan, np.nan]]), [[3, 1, 5]])
    _, _, encode = learn(X[:, 1:], missing="indicator")  # training had none
    later = np.array([[np.nan], [7.0]])
    assert_array_equal(encode(later), [[5], [7]])
    assert np.isnan(later[0, 0])


def test_means_do_not_overflow():
    encoding, _, _ = learn(np.array([[1.5e308], [1.7e308], [-1.7e308], [1.5e308]]), missing="indicator")
    assert encoding.fill[0] == pytest.approx(0.75e308)


def test_arrays_of_objects_are_numbers_as_for_scikit_learn():
    encoding, matrix, _ = learn(np.array([[1, 2.5], [3, Decimal(4)]], dtype=object))
    assert encoding.is_identity
    assert_array_equal(matrix, [[1, 2.5], [3, 4]])


@st.composite
def tables_and_orders(draw):
    """Columns, an order of their rows, and a number of rows."""
    n = draw(st.integers(1, 12))
    rows = lambda cells: st.lists(cells, min_size=n, max_size=n)
    numbers = rows(st.none() | st.floats(-1e6, 1e6)).filter(lambda cells: any(c is not None for c in cells))
    columns = {
        "number": draw(numbers),
        "text": draw(rows(st.none() | st.text(alphabet="abé ", max_size=2))),
        "flag": draw(rows(st.none() | st.booleans())),
    }
    return columns, draw(st.permutations(range(n))), draw(st.integers(1, n))


def as_pandas(columns):
    return pd.DataFrame(columns).astype({"number": "float64", "text": "string", "flag": "boolean"})


def as_polars(columns):
    return pl.DataFrame(columns, schema={"number": pl.Float64, "text": pl.String, "flag": pl.Boolean})


@settings(max_examples=60)
@given(tables_and_orders())
def test_rows_permute_and_stand_alone_and_libraries_agree(case):
    columns, order, n = case
    permuted = {name: [cells[i] for i in order] for name, cells in columns.items()}
    encoding, matrix, encode = learn(as_pandas(columns))
    assert_array_equal(encode(as_pandas(columns)[:n]), matrix[:n])
    for table in (as_pandas(permuted), as_polars(permuted)):
        other, other_matrix, encode = learn(table)
        assert other.names == encoding.names
        assert_array_equal(other_matrix, matrix[order])
        assert_array_equal(encode(as_polars(columns)), matrix)
    # Each row has one level or is missing.
    for j in (1, 2):
        assert_array_equal(matrix[:, encoding.feature == j].sum(axis=1), 1)


def test_an_encoding_survives_pickling():
    encoding, matrix, _ = learn(pandas_table())
    restored = pickle.loads(pickle.dumps(encoding))
    assert_array_equal(restored("Model", polars_table()), matrix)
    assert restored.categories == encoding.categories
    assert {type(level) for levels in encoding.categories if levels for level in levels} == {str, bool}


@pytest.mark.parametrize("table", [pandas_table(), polars_table(), polars_table().select("age", "n")])
def test_features_are_noted_and_compared(table):
    encoding, _, encode = learn(table)
    columns = list(table.columns)
    assert encoding.feature_names == tuple(columns)
    with pytest.raises(
        ValueError,
        match=r"(?s)feature names should match.*must be in the same order.*Pass X\[model.feature_names_in_\]",
    ):
        encode(table[columns[::-1]])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*yet now missing:\n- age"):
        encode(table[columns[1:]])


def test_columns_without_string_names_are_told_by_position():
    frame = pd.DataFrame([["a", 1.0], ["b", np.nan]])
    encoding, _, encode = learn(frame)
    assert encoding.names == ("x0=a", "x0=b", "x0 unseen", "x1", "x1 missing")
    with pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2"):
        encode(frame[[0]])
    with pytest.raises(ValueError, match=r"first \(inf\) in row 0, column 1"):
        encode(pd.DataFrame([["a", np.inf]]))


def test_names_that_only_one_table_has_are_warned_of_and_mixed_ones_refused():
    with pytest.warns(UserWarning, match="^X has feature names, but Model was fitted without feature names$"):
        assert_array_equal(learn([[1.0]])[2](pd.DataFrame({"a": [2.0]})), [[2]])
    with pytest.raises(TypeError, match=r"only supported if all .* has \['int', 'str'\] as column name"):
        learn(pd.DataFrame([[1.0, 2.0]], columns=["a", 1]))


def test_numbers_may_come_as_an_array_and_categories_may_not():
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(learn(pd.DataFrame({"a": [1.0, None]}))[2]([[5.0]]), [[5, 0]])
    message = "type ndarray; Model was fitted to a data frame with categories in column 'color'"
    with pytest.raises(ValueError, match=message):
        learn(pandas_table())[2](pandas_table().to_numpy())


def test_identifiers_and_numbers_stored_as_text_are_warned_of():
    frame = pd.DataFrame({"x": [f"{v:.6f}" for v in np.linspace(0, 1, 30)]})
    message = "30 different categories.*'0.000000', in column 'x'.*to_numeric.*drop"
    with pytest.warns(UserWarning, match=message):
        learn(frame)
    learn(pd.DataFrame({"x": [f"row {i}" for i in range(10)]}))  # few rows may well differ
    learn(pd.DataFrame({"x": [f"{i % 15}" for i in range(30)]}))  # whole numbers may be codes


@pytest.mark.parametrize("texts", [["0,5", "2,5", "13"], ["-0.5", "2.5", "13", "k.A."]])
def test_text_that_is_mostly_numbers_with_fractions_is_warned_of(texts):
    column = texts * 10
    message = (
        f"such as '{texts[0]}', in column 'x'; they are read as {len(texts)} categories without an order"
    )
    with pytest.warns(UserWarning, match=message):
        learn(pd.DataFrame({"x": column}))
    learn(pd.DataFrame({"x": pd.Categorical(column, texts, ordered=True)}))
    learn(pd.DataFrame({"x": pd.Categorical([0.5, 1.5, 2.5] * 10)}))  # they were made categories on purpose
    learn(pd.DataFrame({"x": ["0.5", "1.5", "a", "b", "c"] * 10}))  # mostly names


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


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pd.Series(pd.to_datetime(["2020-01-01", None])), "Datetime"),
        (pd.Series([dt.date(2020, 1, 1), None]), r"date, such as datetime.date\(2020, 1, 1\)"),
        (pd.Series([[1, 2], [3]]), r"list, such as \[3\]"),
        (pd.Series([b"a", b"b"]), "bytes, such as b'b'"),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), "Period"),
        (pd.Series([1j, 2j]), "complex"),
        (pl.Series([dt.date(2020, 1, 1), None]), "Date"),
        (pl.Series([[1], [2]]), "List"),
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
    ("train", "later", "message"),
    [
        ([1.0, 2.0], ["1", "2"], "holds categories, such as '1', in column 'x'; in training it held numbers"),
        (["1"], [1.0], "holds numbers, such as 1.0, in column 'x'; in training it held strings, such"),
        ([True, False], [1, 0], "holds numbers, such as 0.0, .* it held booleans, such as False. Convert"),
        ([True, False], ["True", "False"], "holds strings, such as 'False', .* it held booleans"),
        (pd.Categorical([1, 2]), ["1", "2"], "holds strings, such as '1', .* it held numbers, such as 1"),
    ],
)
def test_a_column_may_not_change_its_type(train, later, message):
    with pytest.raises(ValueError, match=message):
        learn(pd.DataFrame({"x": train}))[2](pd.DataFrame({"x": later}))


def test_booleans_serve_as_numbers():
    _, _, encode = learn(pd.DataFrame({"x": [0, 1, 3.5]}))
    later = pd.DataFrame({"x": pd.array([True, False, None], dtype="boolean")})
    assert_array_equal(encode(later), [[1], [0], [1.5]])


NEVER = "no value in column 'b': all 2 cells are missing. Drop the column"
SEVERAL = "several types in column 'x', such as .* and .*; one type is needed"
MIXTURES = [1, "a"], [True, "a"], [True, 2, None], pd.Categorical([1, "a"]), pd.Categorical([True, 2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pandas_table()[:0], r"0 sample\(s\) \(shape=\(0, 5\)\) while a minimum of 1 is required"),
        (pandas_table()[["n"]][:0], r"0 sample\(s\)"),
        (np.array([["a"]], object), "could not convert string to float: 'a': X is an array.*data frame"),
        (
            pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]),
            "columns with the same name: 'a'; names must be unique. Rename or drop",
        ),
        (
            pd.DataFrame({"n": [np.nan, 1.0, np.inf]}),
            r"contains inf in 1 cell\(s\), the first \(inf\) in row 2, column 'n'",
        ),
        *((pd.DataFrame({"a": a, "b": [np.nan] * 2}), NEVER) for a in ([1.0, 2.0], ["x", "y"])),
        *((pl.DataFrame({"a": a, "b": [None, None]}), NEVER) for a in ([1.0, 2.0], ["x", "y"])),
        *((pd.Series(cells).to_frame("x"), SEVERAL) for cells in MIXTURES),
    ],
)
def test_tables_that_cannot_be_learned_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        learn(X)


def test_other_mistakes_are_explained():
    with pytest.raises(ValueError, match="missing is 'drop'; one of 'auto', 'indicator', 'error' is needed"):
        learn(np.ones((2, 2)), missing="drop")
    with pytest.raises(TypeError, match=r"type LazyFrame, .* not rows; .* Pass X\.collect\(\)"):
        learn(polars_table().lazy())
