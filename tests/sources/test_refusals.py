"""What cannot be read is refused in a sentence that says what was found and what to do."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from isbor import sources
from isbor.sources import SourceError, csv_files
from tests.sources.reading import read

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
import pyarrow.parquet as pq  # noqa: E402

TABLE = pa.table({"age": range(2000), "city": ["Rome", "Oslo"] * 1000, "stars": [1, 2] * 1000})
COLUMNS = "'age', 'city', 'stars'"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a Parquet file and a CSV file of the same rows."""
    pq.write_table(TABLE, tmp_path / "ratings.parquet", row_group_size=500)
    TABLE.to_pandas().to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path


def refused(message, *args, error=SourceError, **options):
    with pytest.raises(error, match=message) as caught:
        read(sources.open_table(*args, **options))
    return caught.value


# --- Files that are not there ---


def test_missing_files(folder):
    refused(r"There is no file '.*rating\.csv'\. Did you mean 'ratings\.csv'", folder / "rating.csv")
    refused(r"There is no file 'nowhere/x\.csv'\. Check the path; relative paths begin at", "nowhere/x.csv")
    refused(r"No file matches '.*\*\.tsv'\. Check the pattern", folder / "*.tsv")
    refused(r"is an address, not a local file\. Pass pyarrow\.dataset\.dataset", "s3://bucket/x.parquet")


def test_folders_without_files(folder):
    (folder / "empty").mkdir()
    refused(r"The folder '.*empty' has no file that ends in \.parquet, .*\. Check the path", folder / "empty")
    (folder / "empty" / "year=2026").mkdir()
    refused(r"It holds the folder 'year=2026': .* pass a pattern .*partitioning='hive'", folder / "empty")


@pytest.mark.parametrize("name", ["x.xlsx", "x", "x.parquet.gz", "x.gz"])
def test_unknown_endings(name, tmp_path):
    (tmp_path / name).touch()
    refused(rf"{name} has an ending that says nothing of its format; \.parquet, ", tmp_path / name)


def test_files_that_are_no_table_together(folder):
    refused(r"of several formats, such as '.*ratings\.csv', '.*ratings\.parquet'", folder)
    path = str(folder / "ratings.csv")
    refused(r"ratings\.csv is listed twice, so that its rows would count twice", [path, folder / "*.csv"])


# --- Columns ---


@pytest.mark.parametrize("name", ["ratings.parquet", "ratings.csv"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "star"}, rf"^target names 'star', .* mean 'stars'\? The columns are {COLUMNS}\.$"),
        (
            {"target": "STARS"},
            r"^target names 'STARS', which is not a column of the table\. Did you mean 'stars'",
        ),
        (
            {"weight": "zzz"},
            rf"^weight names 'zzz', which is not a column of the table\. The columns are {COLUMNS}",
        ),
        ({"ignore": ["aeg"]}, r"^ignore names 'aeg', .* mean 'age'"),
        ({"columns": ["age", "cyty"]}, r"^columns names 'cyty', .* mean 'city'"),
        ({"columns": ["age", "age"]}, r"^columns names 'age' more than once"),
        (
            {"columns": ["age", "stars"], "target": "stars"},
            r"^'stars' is in columns, and is also named as target",
        ),
        ({"ignore": "stars", "target": "stars"}, r"^'stars' is in ignore, but is also named as target"),
        ({"target": "age", "weight": "age"}, r"^'age' is named as target and as weight"),
        ({"target": "stars", "ignore": ["age", "city"]}, r"^No column is left to be a feature"),
        (
            {"weight": "city"},
            r"^The weight column 'city' is of type String in ratings.*, rows 0 to 1999; numbers",
        ),
        ({"block_rows": 0}, r"^block_rows is 0; a whole number of rows, at least 1, is needed"),
        ({"block_rows": 1.5}, r"^block_rows is 1\.5; a whole number"),
    ],
)
def test_wrong_names(name, options, message, folder):
    refused(message, folder / name, **options)


def test_names_that_occur_twice(tmp_path):
    (tmp_path / "x.csv").write_text("a,a,y\n1,2,3\n")
    refused(r"^The table has several columns named 'a'\. Rename", tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("age,city\n1,Rome\n", r"2\.csv lacks 'stars'; all files .* of the first one, .*1\.csv\."),
        ("age,city,stars,x\n1,Rome,2,3\n", r"2\.csv also has 'x'; all files"),
        ("age,town,stars\n1,Rome,2\n", r"2\.csv lacks 'city' and also has 'town'; all files"),
        ("age,city,stars,city\n1,Rome,2,Oslo\n", r"2\.csv has several 'city'; all files"),
    ],
)
def test_a_later_file_with_other_columns(second, message, tmp_path):
    (tmp_path / "1.csv").write_text("age,city,stars\n1,Rome,2\n")
    (tmp_path / "2.csv").write_text(second)
    refused(message, tmp_path, target="stars")


def test_a_later_parquet_file_with_other_columns_or_types(folder):
    pq.write_table(TABLE.rename_columns(["age", "town", "stars"]), folder / "t.parquet")
    refused(r"t\.parquet lacks 'city' and also has 'town'; all files", folder / "*.parquet")
    refused(r"t\.parquet lacks 'city'; all files", folder / "*.parquet", columns="city")
    text = TABLE.set_column(0, "age", TABLE["age"].cast(pa.string()))
    pq.write_table(text, folder / "t.parquet")
    refused(
        r"t\.parquet has other types than .*ratings\.parquet in 'age' \(string here, int64 there\); all",
        folder / "*.parquet",
    )
    assert read(sources.open_table(folder / "*.parquet", columns="stars")) == [(1,), (2,)] * 2000


# --- Damage ---


def test_a_truncated_or_damaged_parquet_file(folder):
    path = folder / "ratings.parquet"
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b""):
        path.write_bytes(damaged)
        error = refused(
            r"ratings\.parquet cannot be read as Parquet: .*truncated or damaged, write or copy", path
        )
        assert isinstance(error.__cause__, pa.ArrowInvalid)
    path.write_bytes(content[:5000] + bytes([255]) * 2000 + content[7000:])
    error = refused(r"ratings\.parquet cannot be read as Parquet: ", path)
    assert isinstance(error.__cause__, (pa.ArrowException, OSError))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n1,2\n3\n", r"CSV parse error: (Row #3: )?Expected 2 columns, got 1"),
        (b'a,b\n1,"x\n' + b"2,y\n" * 1000, r"straddling object"),
        ("a,b\n1,é\n".encode("latin-1"), r".*invalid UTF8 data"),
    ],
)
def test_a_damaged_csv_file(content, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "_CHUNK", 1000)
    (tmp_path / "x.csv").write_bytes(content)
    error = refused(rf"x\.csv cannot be read as CSV: {reason}", tmp_path / "x.csv")
    assert isinstance(error.__cause__, pa.ArrowException)


def test_a_truncated_compressed_file(folder):
    packed = gzip.compress((folder / "ratings.csv").read_bytes())
    for name, content in (("t.csv.gz", packed[: len(packed) // 2]), ("u.csv.gz", b"age,city\n1,2\n")):
        (folder / name).write_bytes(content)
        error = refused(rf"{name} cannot be read as CSV: ", folder / name)
        assert isinstance(error.__cause__, OSError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"x\.csv is empty; a line with the names of the columns, and at least one row"),
        ("a,y", r"x\.csv is empty; a line with"),
        ("a,y\n", r"The table of x\.csv has no rows; at least one is needed"),
    ],
)
def test_a_file_without_rows(content, message, tmp_path):
    (tmp_path / "x.csv").write_text(content)
    refused(message, tmp_path / "x.csv")


@pytest.mark.parametrize(
    "data",
    [TABLE[:0], TABLE[:0].to_pandas(), (np.empty((0, 2)), np.empty(0)), lambda: iter([])],
    ids=["Arrow", "pandas", "arrays", "callable"],
)
def test_data_without_rows(data):
    refused("has no rows; at least one is needed", data)


# --- Changes between passes ---


@pytest.mark.parametrize("name", ["ratings.parquet", "ratings.csv"])
def test_a_file_that_changes_between_passes(name, folder):
    table = sources.open_table(folder / name, target="stars", block_rows=700)
    rows = read(table)
    content = (folder / name).read_bytes()
    later = os.stat(folder / name).st_mtime_ns + 10**9
    os.utime(folder / name, ns=(later, later))
    with pytest.raises(
        SourceError, match=rf"{name} has changed since the table was opened, at the same size;"
    ):
        read(table)
    table = sources.open_table(folder / name, target="stars", block_rows=700)
    blocks = table.blocks()
    next(blocks)
    with open(folder / name, "ab") as file:
        file.write(content[-100:])
    with pytest.raises(
        SourceError, match=rf"{name} has changed .*, from {len(content)} to {len(content) + 100} b"
    ):
        list(blocks)
    (folder / name).unlink()
    with pytest.raises(
        SourceError, match=rf"{name} was there when the table was opened, and cannot be found"
    ):
        read(table)
    assert len(rows) == 2000


def test_a_function_that_gives_other_rows_in_the_next_pass():
    sizes = iter([5, 6, 4, 5])
    table = sources.open_table(lambda: iter([(np.ones((next(sizes), 2)), None)]))
    assert len(read(table)) == 5
    with pytest.raises(
        SourceError, match="has at least 6 rows in this pass, 5 in the one before; each pass must"
    ):
        read(table)
    with pytest.raises(
        SourceError, match="has 4 rows in this pass, 5 in the one before; each pass must give"
    ):
        read(table)
    assert len(read(table)) == 5


def test_a_function_that_shuffles_is_found_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    table = sources.open_table(lambda: iter([(rng.permutation(X), None)]))
    assert len(read(table)) == 100
    with pytest.raises(SourceError, match="has other first rows in this pass .* seed what is random in it"):
        read(table)


def test_last_digits_of_a_computed_query_may_differ():
    noise = iter([0.0, 1e-13])
    table = sources.open_table(lambda: iter([(np.full((3, 2), 0.1 + next(noise)), np.ones(3))]))
    assert len(read(table)) == len(read(table)) == 3


def test_a_query_that_gives_other_rows():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a, i % 2 AS y FROM range(100) s(i)")
    table = sources.open_table(connection.table("t"), target="y")
    assert len(read(table)) == 100
    connection.execute("INSERT INTO t VALUES (100, 1)")
    with pytest.raises(SourceError, match=r"has at least 101 rows in this pass, 100 in the one before.*Sort"):
        read(table)


def test_a_connection_gives_one_result_at_a_time():
    """Some versions refuse the second query, others end the first without a word."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a FROM range(50_000) s(i)")

    def number_of_rows(on):
        n_rows = 0
        for block in sources.open_table(on.table("t"), block_rows=1000).blocks():
            n_rows += len(block.X)
            connection.execute("SELECT 1").fetchall()
        return n_rows

    with pytest.raises((SourceError, duckdb.Error), match="one result at a time|open result"):
        number_of_rows(connection)
    assert number_of_rows(connection.cursor()) == 50_000


def test_a_query_that_fails():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS a FROM range(100) s(i)")
    relation = connection.sql("SELECT CASE WHEN a = 77 THEN error('no 77') ELSE a END AS a FROM t")
    error = refused(r"(?s)The query failed while its rows were read\..*no 77", relation)
    assert isinstance(error.__cause__, duckdb.Error)


# --- Functions and arrays ---


def ones(n_rows, n_columns):
    return np.ones((n_rows, n_columns))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (
            [(ones(5, 2), np.ones(5)), (ones(3, 3), np.ones(3))],
            r"^Batch 1, rows 5 to 7: X has 3 columns, and the first batch has 2;",
        ),
        (
            [(ones(5, 2), np.ones(5)), (ones(3, 2), np.ones(4))],
            r"^Batch 1, rows 5 to 7: X has 3 rows and y has 4;",
        ),
        ([(ones(5, 2), np.ones(5), np.ones(1))], r"^Batch 0, rows 0 to 4: X has 5 rows and weight has 1;"),
        ([ones(5, 2)], r"^Batch 0 is a ndarray; \(X, y\) or \(X, y, weight\) is needed"),
        ([(ones(5, 2),)], r"^Batch 0 is a tuple of 1 parts; "),
        (
            [(np.ones(5), np.ones(5))],
            r"^In batch 0, X is a ndarray of shape \(5,\); a table of rows and columns",
        ),
    ],
)
def test_wrong_batches(batches, message):
    refused(message, lambda: iter(batches))


def test_a_generator_is_read_once_only():
    def batches():
        yield ones(5, 2), np.ones(5)

    generator = batches()
    table = sources.open_table(lambda: generator)
    assert len(read(table)) == 5
    with pytest.raises(
        SourceError, match="returned the same generator as before, which is used up; each call"
    ):
        read(table)
    refused("A generator can be read once only, .* the generator function itself", batches(), error=TypeError)
    refused("A RecordBatchReader can be read once only", TABLE.to_reader(), error=TypeError)
    assert len(read(sources.open_table(batches))) == 5


def test_an_iterator_that_another_one_uses_up():
    generator = iter([(ones(5, 2), None)])
    table = sources.open_table(lambda: map(tuple, generator))
    assert len(read(table)) == 5
    with pytest.raises(SourceError, match="has 0 rows in this pass, 5 in the one before"):
        read(table)


def test_functions_that_return_no_batches():
    refused("The function returned NoneType; batches .* are needed", lambda: None)


def test_arrays_of_different_lengths():
    refused("X has 5 rows and y has 4; both need the same number", (ones(5, 2), np.ones(4)))
    refused("X has 5 rows and weight has 4;", (ones(5, 2), np.ones(5), np.ones(4)))


@pytest.mark.parametrize("data", [lambda: iter([]), (ones(5, 2), np.ones(5)), ones(5, 2)])
@pytest.mark.parametrize("option", ["target", "weight", "columns", "ignore"])
def test_names_without_columns_are_refused(data, option):
    refused(f"^{option} cannot be used with .*, which has no named columns", data, **{option: "a"})


def test_a_column_is_no_table():
    refused("The Arrow stream of ChunkedArray is no table: .* pass the data frame", TABLE["age"])


@pytest.mark.parametrize("data", [None, 5, {"a": [1]}, [ones(2, 2), np.ones(2)], (1,), []])
def test_other_objects_are_refused(data):
    message = rf"^A table is needed, got {type(data).__name__}\. Pass one of: paths of files .*DuckDB"
    refused(message, data, error=TypeError)


def test_queries_of_a_polars_without_batches(monkeypatch):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)
    refused(
        r"cannot give the rows of a LazyFrame in batches\. Update it .*sink_parquet", pl.LazyFrame({"a": [1]})
    )


# --- Without pyarrow ---


def test_what_needs_pyarrow_says_how_to_install_it(folder):
    code = f"""
import sys
sys.modules["pyarrow"] = None
from isbor import sources
import numpy as np
assert [len(b.X) for b in sources.open_table((np.ones((5, 2)), None), block_rows=3).blocks()] == [3, 2]
try:
    sources.open_table({str(folder / "ratings.csv")!r})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "isbor[files]"' in done.stdout


def test_frames_need_no_pyarrow():
    code = """
import sys
import pandas, polars
blocked = [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]
from isbor import sources
for kind in (pandas.DataFrame, polars.DataFrame):
    table = sources.open_table(kind({"a": [1, 2], "y": [1, 2]}), target="y", block_rows=1)
    assert [list(block.y) for block in table.blocks()] == [[1], [2]]
assert blocked or "pyarrow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rows_of_pandas_keep_their_index():
    frame = pd.DataFrame({"a": [1.5], "y": [1]}, index=[7])
    (block,) = sources.open_table(frame, target="y").blocks()
    assert list(block.X.index) == [7]
