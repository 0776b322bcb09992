"""Data, how they are split, and users' tables."""

import gzip
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from isbor.data.frames import take_rows
from isbor.datasets import make_balance_scale, make_saddle
from isbor.experiments import BenchmarkData, CrossValidation, Holdout, Saddle, Share, TableFile
from isbor.experiments.description.tasks import Data

ORDER = ("low", "mid", "high")
TEXT = "grade,size,kind\nlow,1.5,a\nhigh,,b\nmid,2.5,\nlow,0.5,b\n"
CODES = [0, 2, 1, 0]


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
        share = np.bincount(y[test], minlength=len(counts)) - np.array(counts) / folds
        assert np.all(np.abs(share) < 1)  # as even as integers can be
        tested.append(test)
    assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(y)))


def test_rounds_and_seeds_have_their_own_folds():
    y = np.repeat([0, 1, 2], 20)
    scheme = CrossValidation(5)
    tests = [scheme.split(y, split, seed)[1].tolist() for split, seed in ((0, 0), (5, 0), (0, 1), (0, 0))]
    assert tests[0] == tests[3]
    assert tests[0] not in tests[1:3]  # the first fold of the next round, or with another seed


@pytest.mark.parametrize(
    ("scheme", "same"),
    [
        (Share(0.7), Holdout(210)),
        (Share(0.7, train_at_most=100), Holdout(100)),
        (Share(0.5, train_at_most=200, test_at_most=30), Holdout(150, 30)),
    ],
)
def test_a_share_is_a_number_of_rows(scheme, same):
    y = np.zeros(300, dtype=np.intp)
    for found, expected in zip(scheme.split(y, 3, 1), same.split(y, 3, 1), strict=True):
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("scheme", "counts", "message"),
    [
        (Holdout(5), [2, 3], "Mine has 5 rows, of which 5 should train; at least 1 and fewer than all rows"),
        (Holdout(2, -3), [2, 3], "test_at_most of Mine is -3; at least 1 test row is needed"),
        (Share(1.5), [2, 3], "share of training rows of Mine is 1.5; it must be between 0 and 1"),
        (Share(0.05), [2, 3], "Mine has 5 rows, of which 0 should train"),
        (CrossValidation(2), [0, 9, 0], "Mine has labels of one class only; at least 2 classes are needed"),
        (CrossValidation(4), [9, 3, 9], r"'level 1' of Mine has 3 row\(s\), fewer than the 4 folds\. Use"),
        (Holdout(4, 1), [2, 3], None),
        (CrossValidation(3), [3, 0, 4], None),  # a class without rows needs none in a fold
    ],
)  # fmt: skip
def test_data_that_cannot_be_split_are_refused(scheme, counts, message):
    y = np.repeat(np.arange(len(counts)), counts)
    data = Data(np.zeros((len(y), 1)), y, np.array([f"level {k}" for k in range(len(counts))]))
    if message is None:
        scheme.check(data, "Mine")
        return
    with pytest.raises(ValueError, match=message):
        scheme.check(data, "Mine")


# --- Known data --------------------------------------------------------------------------------------------


def test_known_data_have_their_labels_in_order():
    saddle, (X, y) = Saddle(50, random_state=3).load(), make_saddle(50, random_state=3)
    assert_array_equal(saddle.X, X)
    assert_array_equal(saddle.classes[saddle.y], y)
    scale, (X, y) = BenchmarkData("bs").load(), make_balance_scale()
    assert scale.classes.tolist() == [1, 2, 3]
    # A file may have the rows in another order.
    found = np.column_stack([np.asarray(scale.X), scale.classes[scale.y]])
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, np.column_stack([X, y]).tolist()))


# --- A user's table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["grades.csv", "GRADES.CSV", "grades.2024.csv.gz", "grades.tsv.gz", "g.parquet"]
)
def test_tables_are_read_by_their_endings(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        rows = [("low", 1.5, "a"), ("high", None, "b"), ("mid", 2.5, None), ("low", 0.5, "b")]
        pl.DataFrame(rows, schema=["grade", "size", "kind"], orient="row").write_parquet(path)
    else:
        content = (TEXT.replace(",", "\t") if ".tsv" in name else TEXT).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    table = TableFile.of(path, "grade", ORDER)
    found = table.load()
    assert table.remark() == ""
    assert list(found.X.columns) == ["size", "kind"]
    assert (found.classes.tolist(), found.y.tolist()) == (list(ORDER), CODES)
    sizes, kinds = (np.asarray(found.X[name]).tolist() for name in ("size", "kind"))
    assert np.array_equal(sizes, [1.5, np.nan, 2.5, 0.5], equal_nan=True)
    assert [kind if isinstance(kind, str) else None for kind in kinds] == ["a", "b", None, "b"]


NOTES = [("größe", "note"), ("1.5", "tief"), ("2", "hoch"), ("-0.25", "tief"), ("", "hoch")]


@pytest.mark.parametrize(
    ("delimiter", "encoding", "decimal", "remark"),
    [
        (",", "utf-8", ".", ""),
        (";", "utf-8", ".", "text in UTF-8 with semicolons between columns"),
        (";", "cp1252", ",", "text in Windows-1252 with semicolons between columns and decimal commas"),
        ("\t", "utf-8-sig", ".", "text in UTF-8 with a byte order mark with tabs between columns"),
        (",", "utf-16", ".", "text in UTF-16 with commas between columns"),
    ],
)
def test_delimiter_encoding_and_decimal_sign_are_detected(tmp_path, delimiter, encoding, decimal, remark):
    text = "\r\n".join(delimiter.join((size.replace(".", decimal), note)) for size, note in NOTES)
    path = tmp_path / "noten.csv"
    path.write_bytes((text + "\r\n").encode(encoding))
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
    ],
)
def test_the_delimiter_is_the_one_that_sets_off_the_target(tmp_path, text, features):
    assert list(load(written(tmp_path, text)).X.columns) == features


def test_columns_can_be_dropped(tmp_path):
    path = written(tmp_path, "id,y,x,date\nk1,1,0,2024-01-10\nk2,2,5,2024-01-11\n")
    assert list(TableFile.of(path, "y", drop=("id", "date")).load().X.columns) == ["x"]
    for drop, message in (
        (["ID"], r"grades\.csv has no column 'ID'; its columns are id, y, x, date\. Only columns of"),
        (["y"], "'y' is the target and cannot be dropped as well"),
        (["id", "x", "date"], "has no feature beside 'y' after dropping id, x, date; at least one column"),
    ):
        with pytest.raises(ValueError, match=message):
            TableFile.of(path, "y", drop=drop).load()


@pytest.mark.parametrize(
    ("labels", "order", "classes", "codes"),
    [
        ([3, 1, 10, 3], (), [1, 3, 10], [1, 0, 2, 1]),  # by size, not as text
        ([1.5, 1, 2, 1.5], (), [1, 1.5, 2], [1, 0, 2, 1]),  # half stars
        ([k % 30 for k in range(300)], (), list(range(30)), [k % 30 for k in range(300)]),
        (["true", "false", "true"], (), [False, True], [1, 0, 1]),
        ([3, 1, 2, 3], ("3", "2", "1"), ["3", "2", "1"], [0, 2, 1, 0]),  # 3 is the worst grade
        ([3.0, 1.0, 2.0], ("1", "2", "3"), ["1", "2", "3"], [2, 0, 1]),
        (["b", "a"], ("b", "none seen", "a"), ["b", "none seen", "a"], [0, 2]),
        # Read as missing values, numbers and Booleans elsewhere.
        (["None", "mild", "NA", "None"], ("None", "mild", "NA"), ["None", "mild", "NA"], [0, 1, 2, 0]),
        (["02", "01", "02"], ("01", "02"), ["01", "02"], [1, 0, 1]),
    ],
)
def test_labels_are_in_order(tmp_path, labels, order, classes, codes):
    found = load(written(tmp_path, column(labels)), order=order)
    assert found.classes.tolist() == classes
    assert found.y.tolist() == codes


def test_the_order_of_a_categorical_column_is_used(tmp_path):
    grade = pl.Series(["mid", "low", "high", "low"], dtype=pl.Enum(ORDER))
    pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "grade": grade}).write_parquet(tmp_path / "grades.parquet")
    data = load(tmp_path / "grades.parquet", "grade")
    assert (data.y.tolist(), data.classes.tolist()) == ([1, 0, 2, 0], list(ORDER))


def test_types_are_those_of_all_rows(tmp_path):
    sizes = ["1"] * 1499 + ["0.5"]
    path = written(tmp_path, "size,y\n" + "".join(f"{size},{k % 2}\n" for k, size in enumerate(sizes)))
    assert np.asarray(load(path).X["size"]).tolist() == [1.0] * 1499 + [0.5]


@pytest.mark.parametrize(
    ("text", "order", "message"),
    [
        (column([1, 2], "z"), (), r"grades\.csv has no column 'y'; its columns are x, z\. Name the"),
        (",".join(f"c{k}" for k in range(30)) + "\n" + ",".join("1" * 30), (), "c6, c7, c8, c9, …."),
        ("y\n1\n2\n", (), "has no feature beside 'y'; at least one column is needed"),
        (column([1, "", 3, ""]), (), "2 of 4 rows of grades.csv have no 'y'. Remove these rows"),
        (column(["low", "high"]), (), r"'y' of grades\.csv are text \(high, low\) of unknown order\. List"),
        (column(["NA", "mild"]), (), r"are text \(NA, mild\)"),
        (column(["a", "d", "b", "c"]), ("a", "b"), r"holds 'c', 'd', but the order is 'a', 'b'\. List every"),
        (column(range(30)), (), r"holds 30 different numbers in 30 rows\. This is a continuous target"),
        (column([4, 4, 4]), (), r"Column 'y' of grades\.csv holds 4 in all rows; at least 2 classes"),
        ("", (), r"grades\.csv cannot be read as a table: "),
        ('x,y\n1,"2\n', (), r"grades\.csv cannot be read as a table: "),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_is_explained(tmp_path, text, order, message):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        load(path, order=order)


def test_a_file_that_is_not_a_table_is_explained(tmp_path):
    for name in ("grades.xlsx", "grades", "csv"):
        with pytest.raises(ValueError, match=rf"{name} is not a \.csv, \.tsv or \.parquet file; save the"):
            load(written(tmp_path, TEXT, name), "grade", ORDER)
    with pytest.raises(ValueError, match=r"grades\.parquet cannot be read as a table: "):
        load(written(tmp_path, TEXT, "grades.parquet"), "grade", ORDER)
    (tmp_path / "bytes.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(ValueError, match=r"bytes\.csv .*: it is not text in UTF-8, UTF-16 or Windows-1252"):
        load(tmp_path / "bytes.csv")


def test_without_pandas_no_table_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas is needed, which is not installed: pip install"):
        load(written(tmp_path, TEXT), "grade", ORDER)


def test_a_missing_or_changed_file_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "grades.csv"
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*grades\.csv'"):
        TableFile.of(path, "grade", ORDER)
    table = TableFile.of(written(tmp_path, TEXT), "grade", ORDER)
    path.write_text(TEXT.replace("1.5", "1.6"))
    with pytest.raises(ValueError, match=r"grades\.csv has changed since the comparison started"):
        table.load()
    path.write_text(TEXT)
    # The path is absolute: a job may run in another directory.
    monkeypatch.chdir(tmp_path)
    relative = TableFile.of(path.relative_to(tmp_path), "grade", ORDER)
    monkeypatch.chdir(tmp_path.parent)
    assert relative.load().y.tolist() == CODES
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no file '.*grades\.csv'"):
        table.load()


# --- Rows --------------------------------------------------------------------------------------------------


def test_rows_are_taken_by_position_and_keep_their_types():
    numbers = np.arange(12.0).reshape(6, 2)
    index = np.array([5, 0, 0, 3])
    frame = pd.DataFrame(numbers, columns=["a", "b"], index=[5, 4, 3, 2, 1, 0])  # not positions
    for X in (numbers, frame, pl.DataFrame(numbers, schema=["a", "b"])):
        taken = take_rows(X, index)
        assert type(taken) is type(X)
        assert np.asarray(taken).tolist() == numbers[index].tolist()
    grades = pd.DataFrame({"c": pd.Categorical(["x", "y", "x"], ["y", "x"], ordered=True), "n": [1, 2, 3]})
    assert take_rows(grades, np.array([2, 0])).dtypes.tolist() == grades.dtypes.tolist()
