"""The types of CSV columns come from all cells, wherever they are."""

import gzip
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isbor import sources
from isbor.sources import csv_files
from isbor.sources.csv_types import MISSING_NUMBERS
from tests.sources.reading import read

pa = pytest.importorskip("pyarrow")


def column(tmp_path, cells, name="x.csv", **options):
    """Write cells into a column and return its type and its cells as they are read."""
    (tmp_path / name).write_text("a,b\n" + "".join(f"{cell},0\n" for cell in cells), "utf-8")
    table = sources.open_table(tmp_path / name, columns="a", **options)
    types = {block.X.schema.field("a").type for block in table.blocks()}
    assert len(types) == 1
    return types.pop(), [row[0] for row in read(table)]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2", "007"], pa.int64(), [1, -2, 7]),
        (["1", "", "NA"], pa.int64(), [1, None, None]),
        (["1", '""', "3"], pa.int64(), [1, None, 3]),
        ([" 1", "2 ", " "], pa.int64(), [1, 2, None]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["1e3", "-.5", "+4"], pa.float64(), [1000.0, -0.5, 4.0]),
        (["1", "inf"], pa.float64(), [1.0, math.inf]),
        (["1.5", "nan", "null", "None"], pa.float64(), [1.5, None, None, None]),
        (["1", "99999999999999999999"], pa.float64(), [1.0, 1e20]),
        (["true", "False", ""], pa.bool_(), [True, False, None]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["1", "x"], pa.string(), ["1", "x"]),
        (["0x1F", "2.5"], pa.string(), ["0x1F", "2.5"]),
        (["0x1F", "2"], pa.string(), ["0x1F", "2"]),
        (["DE", "NA", "", '""'], pa.string(), ["DE", "NA", None, None]),
        (["null", " x", "  "], pa.string(), ["null", " x", "  "]),
        (['"a,b"', '"two\nlines"', "é"], pa.string(), ["a,b", "two\nlines", "é"]),
        (["2026-01-01", "2026-01-02"], pa.string(), ["2026-01-01", "2026-01-02"]),
        (["", "NA"], pa.int64(), [None, None]),
    ],
)
def test_the_kind_of_a_column(cells, kind, values, tmp_path):
    assert column(tmp_path, cells) == (kind, values)


@pytest.mark.parametrize("last", ["0.5", "word", "true", "", "0x1F"])
def test_a_cell_beyond_the_first_megabytes_counts(last, tmp_path, monkeypatch):
    cells = ["1"] * 4000
    monkeypatch.setattr(csv_files, "_CHUNK", 1000)
    far = column(tmp_path, [*cells, last])
    monkeypatch.undo()
    near = column(tmp_path, [last, *cells], "y.csv")
    assert far == (near[0], near[1][1:] + near[1][:1])


CELLS = st.lists(
    st.sampled_from(
        ["1", "0x1F", "2.5", "-7", "", "NA", "x", "true", "false", " 3", "+1", "inf", "1e400", " x"]
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=CELLS, cut=st.integers(0, 12), chunk=st.integers(12, 60))
def test_the_cut_into_files_and_chunks_changes_no_cell(tmp_path, monkeypatch, cells, cut, chunk):
    whole = column(tmp_path, cells)
    header = "a,b\n"
    for name, part in (("1.csv.gz", cells[:cut]), ("2.csv.gz", cells[cut:])):
        text = header + "".join(f"{cell},0\n" for cell in part)
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    with monkeypatch.context() as patch:
        patch.setattr(csv_files, "_CHUNK", chunk)
        table = sources.open_table(tmp_path / "*.csv.gz", columns="a", block_rows=5)
        types = {block.X.schema.field("a").type for block in table.blocks()}
        assert (types, [row[0] for row in read(table)]) == ({whole[0]}, whole[1])


@pytest.mark.parametrize("mark", [mark for mark in MISSING_NUMBERS if mark])
def test_marks_of_missing_numbers_are_text_in_a_column_of_text(mark, tmp_path):
    assert column(tmp_path, ["1.5", mark]) == (pa.float64(), [1.5, None])
    assert column(tmp_path, ["x", mark]) == (pa.string(), ["x", mark])


def test_all_files_count_for_a_type(tmp_path):
    (tmp_path / "1.csv").write_text("a,y\n1,1\n")
    (tmp_path / "2.csv").write_text("y,a\n2,x\n")
    (tmp_path / "3.csv").write_text("a,y\n2.5,1\n")
    table = sources.open_table(tmp_path, target="y")
    assert read(table) == [("1", 1), ("x", 2), ("2.5", 1)]


def test_a_byte_order_mark_and_names_in_quotes(tmp_path):
    (tmp_path / "x.csv").write_bytes('\ufeff"my, name",y\r\n1,2\r\n'.encode())
    assert read(sources.open_table(tmp_path / "x.csv", columns="my, name", target="y")) == [(1, 2)]
