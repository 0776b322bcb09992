import gzip
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isbor.datasets import make_balance_scale, make_saddle
from isbor.experiments.description.tasks import (
    BenchmarkData,
    CrossValidation,
    Data,
    Holdout,
    Saddle,
    TableFile,
    Task,
    label_text,
    take_rows,
)

ORDER = ("low", "mid", "high")
ROWS = [("low", 1.5, "a"), ("high", None, "b"), ("mid", 2.5, None), ("low", 0.5, "b")]
TEXT = "grade,size,kind\nlow,1.5,a\nhigh,,b\nmid,2.5,\nlow,0.5,b\n"
CODES = [0, 2, 1, 0]


@pytest.fixture(params=["pandas", "polars"])
def library(request, monkeypatch):
    """Read with pandas, and as where only polars is installed."""
    if request.param == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    return request.param


def written(directory, text, name="grades.csv"):
    path = directory / name
    path.write_text(text)
    return path


def column(labels, name="y"):
    """Return a table of the labels and one feature."""
    return f"x,{name}\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels))


def load(path, target="y", order=()):
    return TableFile.of(path, target, order).load()


# --- Splits ------------------------------------------------------------------------------------------------


@given(
    n=st.integers(2, 60),
    train=st.integers(1, 59),
    test_at_most=st.none() | st.integers(1, 70),
    split=st.integers(0, 50),
    seed=st.integers(0, 2**32 - 10_001),
)
def test_a_holdout_is_the_permutation_of_the_seed_plus_the_split(n, train, test_at_most, split, seed):
    train = min(train, n - 1)
    rows, others = Holdout(train, test_at_most).split(np.zeros(n, int), split, seed)
    order = np.random.default_rng(seed + split).permutation(n)
    assert_array_equal(np.concatenate([rows, others]), order[: train + len(others)])
    assert len(rows) == train
    assert len(others) == min(n - train, n if test_at_most is None else test_at_most)


@given(
    counts=st.lists(st.integers(5, 20), min_size=2, max_size=4),
    folds=st.integers(2, 5),
    seed=st.integers(0, 2**31),
    rounds=st.integers(0, 3),
)
def test_the_folds_of_a_round_share_out_the_rows_of_each_class(counts, folds, seed, rounds):
    y = np.repeat(np.arange(len(counts)), counts)
    tested = []
    for split in range(rounds * folds, (rounds + 1) * folds):
        train, test = CrossValidation(folds).split(y, split, seed)
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        # As even as whole numbers can be.
        share = np.bincount(y[test], minlength=len(counts)) - np.array(counts) / folds
        assert np.all(np.abs(share) < 1)
        tested.append(test)
    assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(y)))


def test_rounds_and_seeds_have_folds_of_their_own():
    y = np.repeat([0, 1, 2], 20)
    scheme = CrossValidation(5)
    first = scheme.split(y, 0, seed=0)[1].tolist()
    assert scheme.split(y, 5, seed=0)[1].tolist() != first  # the first fold of the next round
    assert scheme.split(y, 0, seed=1)[1].tolist() != first
    assert scheme.split(y, 0, seed=0)[1].tolist() == first


def data_of(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    return Data(np.zeros((len(y), 1)), y, np.array([f"level {k}" for k in range(len(counts))]))


@pytest.mark.parametrize(
    ("scheme", "counts", "message"),
    [
        (Holdout(5), [2, 3], "Mine has 5 rows, and 5 are to train; at least 1 and fewer than all are needed"),
        (Holdout(0), [2, 3], "Mine has 5 rows, and 0 are to train"),
        (Holdout(-1), [2, 3], "and -1 are to train"),
        (Holdout(2, -3), [2, 3], "At most -3 rows of Mine are to test; at least 1 is needed"),
        (CrossValidation(2), [0, 9, 0], "Mine holds labels of one class only; at least 2 are needed"),
        (
            CrossValidation(4),
            [9, 3, 9],
            r"The class 'level 1' of Mine has 3 row\(s\), fewer than the 4 folds\. Ask for fewer folds",
        ),
    ],
)
def test_data_that_cannot_be_split_are_refused(scheme, counts, message):
    with pytest.raises(ValueError, match=message):
        scheme.check(data_of(counts), "Mine")


def test_data_that_can_be_split_are_not_refused():
    Holdout(4, 1).check(data_of([2, 3]), "Mine")
    CrossValidation(3).check(data_of([3, 0, 4]), "Mine")  # a class without rows asks for none


def test_a_task_checks_its_split_when_it_loads():
    task = Task("s", "Saddle", Saddle(40), Holdout(40))
    with pytest.raises(ValueError, match="Saddle has 40 rows, and 40 are to train"):
        task.load()


# --- Data that are made ------------------------------------------------------------------------------------


def test_the_saddle_is_the_drawn_one():
    data = Saddle(50, random_state=3).load()
    X, y = make_saddle(50, random_state=3)
    assert_array_equal(data.X, X)
    assert_array_equal(data.classes[data.y], y)
    assert len(data) == 50


def test_benchmarks_are_loaded_with_their_labels_in_order():
    data = BenchmarkData("bs").load()
    X, y = make_balance_scale()
    assert len(data) == 625
    assert data.classes.tolist() == [1, 2, 3]
    # A file may have the rows in another order.
    found = np.column_stack([np.asarray(data.X), data.classes[data.y]])
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, np.column_stack([X, y]).tolist()))


# --- A user's table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("grades.csv", TEXT.encode()),
        ("GRADES.CSV", TEXT.encode()),
        ("grades.2024.csv.gz", gzip.compress(TEXT.encode())),
        ("grades.tsv", TEXT.replace(",", "\t").encode()),
        ("grades.tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode())),
    ],
    # Not the content: a compressed file holds the time, and both test processes must have the same names.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_text_files_are_read(tmp_path, library, name, content):
    (tmp_path / name).write_bytes(content)
    check_grades(load(tmp_path / name, "grade", ORDER), library)


NOTES = [("größe", "note"), ("1.5", "tief"), ("2", "hoch"), ("-0.25", "tief"), ("", "hoch")]


@pytest.mark.parametrize(
    ("delimiter", "encoding", "decimal", "remark"),
    [
        (",", "utf-8", ".", ""),
        (";", "utf-8", ".", "text in UTF-8 with semicolons between columns"),
        (";", "cp1252", ",", "text in Windows-1252 with semicolons between columns and decimal commas"),
        ("\t", "utf-8-sig", ".", "text in UTF-8 with a byte order mark with tabs between columns"),
        ("|", "latin-1", ".", "text in Windows-1252 with vertical bars between columns"),
        (",", "utf-16", ".", "text in UTF-16 with commas between columns"),
        ("\t", "utf-16-le", ",", "text in UTF-16-LE with tabs between columns and decimal commas"),
        (";", "utf-16-be", ".", "text in UTF-16-BE with semicolons between columns"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiter_encoding_and_decimal_sign_are_detected(
    tmp_path, library, delimiter, encoding, decimal, remark, newline
):
    text = newline.join(delimiter.join((size.replace(".", decimal), note)) for size, note in NOTES)
    path = tmp_path / "noten.csv"
    path.write_bytes((text + newline).encode(encoding))
    table = TableFile.of(path, "note", ("tief", "hoch"))
    found = table.load()
    assert list(found.X.columns) == ["größe"]
    assert_array_equal(np.asarray(found.X["größe"], dtype=float), [1.5, 2.0, -0.25, np.nan])
    assert found.y.tolist() == [0, 1, 0, 1]
    assert table.remark() == (f"noten.csv was read as {remark}." if remark else "")


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ('x,"a; b; c",y\n1,2,3\n4,5,6\n', ["x", "a; b; c"]),  # quoted
        ("a, in cm;y\n1,5;1\n2,5;2\n", ["a, in cm"]),  # commas split all rows alike, but no "y" off
        ("a b;c|d,x,y\n1,2,1\n3,4,2\n", ["a b;c|d", "x"]),
        ("x\ty\n1,000\t1\n2,000\t2\n", ["x"]),
    ],
)
def test_the_delimiter_is_the_one_that_sets_off_the_target(tmp_path, text, features):
    assert list(load(written(tmp_path, text)).X.columns) == features


def test_columns_can_be_dropped(tmp_path, library):
    path = written(
        tmp_path, "id,y,x,date\n" + "".join(f"k{k},{k % 2},{k},2024-01-{k}\n" for k in range(10, 20))
    )
    table = TableFile.of(path, "y", drop=("id", "date"))
    assert list(table.load().X.columns) == ["x"]
    for drop, message in {
        (
            "ID",
        ): r"grades\.csv has no column 'ID'; its columns are id, y, x, date\. Only columns of the table",
        ("y",): "'y' is the target and cannot be dropped as well",
        ("id", "x", "date"): "has no column but 'y' after dropping id, x, date; at least one feature",
    }.items():
        with pytest.raises(ValueError, match=message):
            TableFile.of(path, "y", drop=drop).load()


def test_parquet_files_are_read(tmp_path, library):
    path = tmp_path / "grades.parquet"
    pl.DataFrame(ROWS, schema=["grade", "size", "kind"], orient="row").write_parquet(path)
    found = load(path, "grade", ORDER)
    check_grades(found, "pandas" if isinstance(found.X, pd.DataFrame) else "polars")


def check_grades(found, library):
    assert type(found.X).__module__.partition(".")[0] == library
    assert list(found.X.columns) == ["size", "kind"]
    assert found.classes.tolist() == list(ORDER)
    assert found.y.tolist() == CODES
    sizes, kinds = (np.asarray(found.X[name]).tolist() for name in ("size", "kind"))
    assert np.array_equal(sizes, [1.5, np.nan, 2.5, 0.5], equal_nan=True)
    assert [kind if isinstance(kind, str) else None for kind in kinds] == ["a", "b", None, "b"]


def test_the_target_may_be_any_column(tmp_path, library):
    path = written(tmp_path, "a,y,b\n" + "1,2,3\n4,5,6\n")
    found = load(path)
    assert list(found.X.columns) == ["a", "b"]
    assert np.asarray(found.X).tolist() == [[1, 3], [4, 6]]


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        ([3, 1, 10, 3], [1, 3, 10], [1, 0, 2, 1]),  # by size, not by their texts
        ([2.0, -1.0, 2.0], [-1, 2], [1, 0, 1]),
        ([1.5, 1, 2, 1.5], [1, 1.5, 2], [1, 0, 2, 1]),  # half stars
        (["true", "false", "true"], [False, True], [1, 0, 1]),
    ],
)
def test_numbers_are_labels_in_their_own_order(tmp_path, library, labels, classes, codes):
    found = load(written(tmp_path, column(labels)))
    assert found.classes.tolist() == classes
    assert found.y.tolist() == codes


@pytest.mark.parametrize(
    ("labels", "order", "codes"),
    [
        ([3, 1, 2, 3], ("3", "2", "1"), [0, 2, 1, 0]),  # 3 is the worst grade
        ([3.0, 1.0, 2.0], ("1", "2", "3"), [2, 0, 1]),
        ([1.5, 1.0], ("1", "1.5", "2"), [1, 0]),
        (["b", "a"], ("b", "none seen", "a"), [0, 2]),
    ],
)
def test_the_order_may_be_given(tmp_path, library, labels, order, codes):
    found = load(written(tmp_path, column(labels)), order=order)
    assert found.classes.tolist() == list(order)
    assert found.y.tolist() == codes


def test_labels_that_pandas_takes_for_missing_are_labels(tmp_path, library):
    path = written(tmp_path, column(["None", "mild", "NA", "None"]))
    found = load(path, order=("None", "mild", "NA"))
    assert found.y.tolist() == [0, 1, 2, 0]
    with pytest.raises(ValueError, match=r"are text \(NA, None, mild\), whose order is not known"):
        load(path)


@pytest.mark.parametrize("order", [("01", "02"), ("false", "true"), ("1e0", "2e0")])
def test_labels_in_an_order_are_read_as_they_are_written(order, tmp_path, library):
    found = load(written(tmp_path, column([order[1], order[0], order[1]])), order=order)
    assert found.y.tolist() == [1, 0, 1]
    assert found.classes.tolist() == list(order)


def test_types_are_those_of_all_rows(tmp_path, library):
    n = 1500
    sizes = ["1"] * (n - 1) + ["0.5"]
    path = written(tmp_path, "size,y\n" + "".join(f"{size},{k % 2}\n" for k, size in enumerate(sizes)))
    found = load(path)
    assert np.asarray(found.X["size"]).tolist() == [1.0] * (n - 1) + [0.5]


@pytest.mark.parametrize(
    ("text", "order", "message"),
    [
        (
            column([1, 2], "z"),
            (),
            r"grades\.csv has no column 'y'; its columns are x, z\. The column of the labels is needed",
        ),
        (
            ",".join(f"c{k}" for k in range(30)) + "\n" + ",".join("1" * 30) + "\n",
            (),
            "its columns are c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ….",
        ),
        ("y\n1\n2\n", (), "has no column but 'y'; at least one feature is needed"),
        (column([1, "", 3, ""]), (), "2 of 4 rows of grades.csv have no 'y'; each needs one. Remove these"),
        (column(["a", "", "b"]), ("a", "b"), "1 of 3 rows of grades.csv have no 'y'"),
        (
            column(["low", "high", "low"]),
            (),
            r"The labels in the column 'y' of grades\.csv are text \(high, low\), whose order is not known\. "
            "Name them all as the order, lowest first",
        ),
        (
            column(["a", "d", "b", "c"]),
            ("a", "b"),
            r"The column 'y' of grades\.csv holds 'c', 'd', which the order \('a', 'b'\) does not name\.",
        ),
        (column([1, 2, 3]), ("1", "2"), r"holds '3', which the order \('1', '2'\) does not name"),
        (
            column(range(30)),
            (),
            "holds 30 different numbers in 30 rows: a quantity, not a few ordered classes",
        ),
        (column(np.linspace(0, 1, 300)), (), "holds 300 different numbers in 300 rows: a quantity"),
        (column([4, 4, 4]), (), "The column 'y' of grades.csv holds 4 in all rows; at least 2 classes"),
        ("x,y\n", (), r"grades\.csv has no rows"),
        ("", (), r"grades\.csv cannot be read as a table: "),
        ('x,y\n1,"2\n', (), r"grades\.csv cannot be read as a table: "),
        ("x,y\n1,2\n1,2,3,4\n", (), r"grades\.csv cannot be read as a table: "),
    ],
)
def test_a_table_that_does_not_serve_is_explained(tmp_path, library, text, order, message):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        load(path, order=order)


def test_many_rows_may_have_many_classes(tmp_path):
    assert len(load(written(tmp_path, column([k % 30 for k in range(300)]))).classes) == 30
    assert len(load(written(tmp_path, column([k % 20 for k in range(40)]))).classes) == 20


def test_a_file_that_is_no_table_is_explained(tmp_path, library):
    for name in ("grades.xlsx", "grades", "csv"):
        with pytest.raises(
            ValueError, match=rf"{name} is not a \.csv, \.tsv or \.parquet file; save the table"
        ):
            load(written(tmp_path, TEXT, name), "grade", ORDER)
    with pytest.raises(ValueError, match=r"grades\.parquet cannot be read as a table: "):
        load(written(tmp_path, TEXT, "grades.parquet"), "grade", ORDER)


def test_without_pandas_and_polars_no_table_is_read(tmp_path, monkeypatch):
    path = written(tmp_path, TEXT)
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pandas or polars"):
        load(path, "grade", ORDER)


def test_a_file_that_is_not_there_or_goes_away_is_missed(tmp_path):
    path = tmp_path / "grades.csv"
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*grades\.csv'"):
        TableFile.of(path, "grade", ORDER)
    table = TableFile.of(written(tmp_path, TEXT), "grade", ORDER)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*grades\.csv'"):
        table.load()


def test_a_changed_file_is_noticed_and_a_copy_is_as_good(tmp_path, monkeypatch):
    path = written(tmp_path, TEXT)
    table = TableFile.of(path, "grade", ORDER)
    copy = TableFile.of(written(tmp_path, TEXT, "copy.csv"), "grade", ORDER)
    assert copy.digest == table.digest
    path.write_text(TEXT.replace("1.5", "1.6"))
    with pytest.raises(ValueError, match=r"grades\.csv has changed since the comparison began; begin a new"):
        table.load()
    path.write_text(TEXT)
    assert table.load().y.tolist() == CODES
    # A path is kept whole: a job may be computed elsewhere.
    monkeypatch.chdir(tmp_path)
    relative = TableFile.of(path.relative_to(tmp_path), "grade", ORDER)
    monkeypatch.chdir(tmp_path.parent)
    assert relative.load().y.tolist() == CODES


# --- Rows --------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), max_size=10))
def test_rows_are_taken_by_position(rows):
    numbers = np.arange(12.0).reshape(6, 2)
    index = np.array(rows, dtype=np.intp)
    frame = pd.DataFrame(numbers, columns=["a", "b"], index=[5, 4, 3, 2, 1, 0])  # no positions
    for X in (numbers, frame, pl.DataFrame(numbers, schema=["a", "b"])):
        taken = take_rows(X, index)
        assert type(taken) is type(X)
        assert np.asarray(taken).tolist() == numbers[index].tolist()


def test_rows_of_a_frame_keep_their_types():
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y", "x"], ["y", "x"], ordered=True), "n": [1, 2, 3]})
    taken = take_rows(frame, np.array([2, 0]))
    assert taken.dtypes.tolist() == frame.dtypes.tolist()
    assert taken["n"].tolist() == [3, 1]
    sizes = pl.DataFrame({"size": ["S", "L", "S"]}, schema={"size": pl.Enum(["S", "M", "L"])})
    assert take_rows(sizes, np.array([1])).schema == sizes.schema


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (1.0, "1"),
        (np.float32(2.0), "2"),
        (1.5, "1.5"),
        (-0.0, "0"),
        (3, "3"),
        (np.int64(3), "3"),
        (True, "True"),
        ("1.0", "1.0"),
        (np.inf, "inf"),
        (np.nan, "nan"),
        (1e20, "100000000000000000000"),
    ],
)
def test_labels_as_texts(label, text):
    assert label_text(label) == text


def test_the_order_of_a_categorical_column_is_taken(tmp_path):
    polars = pytest.importorskip("polars")
    grade = polars.Series(["mid", "low", "high", "low"], dtype=polars.Enum(["low", "mid", "high"]))
    polars.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "grade": grade}).write_parquet(tmp_path / "grades.parquet")
    data = TableFile.of(tmp_path / "grades.parquet", "grade").load()
    assert data.y.tolist() == [1, 0, 2, 0]
    assert data.classes.tolist() == ["low", "mid", "high"]
