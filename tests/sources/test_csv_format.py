"""How CSV files are written: found out from their beginning, and read accordingly."""

import gzip

import pytest

from isbor import sources
from isbor.sources import CsvFormat, SourceError, detect_csv_format, open_table

ROWS = "größe;plz;note\n1,5;01;gut\n-2;02;schlecht\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_spreadsheet_with_decimal_commas_is_read_as_numbers(encoding, tmp_path):
    path = tmp_path / "noten.csv.gz"
    path.write_bytes(gzip.compress(ROWS.encode(encoding)))
    form = detect_csv_format(path)
    assert (form.delimiter, form.decimal) == (";", ",")
    (block,) = open_table(path, target="note", csv_format=form).blocks()
    assert block.X.to_pydict() == {"größe": [1.5, -2.0], "plz": [1, 2]}
    assert block.y.to_pylist() == ["gut", "schlecht"]


def test_columns_of_text_are_as_in_the_file(tmp_path):
    (tmp_path / "noten.csv").write_text("plz,n\n01,1.50\nNA,\n", encoding="utf-8")
    (block,) = open_table(tmp_path / "noten.csv", csv_format=CsvFormat(text=("plz", "n"))).blocks()
    assert block.X.to_pydict() == {"plz": ["01", "NA"], "n": ["1.50", None]}


def test_a_decimal_point_is_no_number_where_commas_are(tmp_path):
    (tmp_path / "mixed.csv").write_text("a;b\n1,5;1.5\n2;2\n", encoding="utf-8")
    (block,) = open_table(tmp_path / "mixed.csv", csv_format=CsvFormat(";", decimal=",")).blocks()
    assert block.X.to_pydict() == {"a": [1.5, 2.0], "b": ["1.5", "2"]}


def test_known_names_decide_between_delimiters(tmp_path):
    (tmp_path / "two.csv").write_text("a,b;c\n1,2;3\n", encoding="utf-8")
    assert detect_csv_format(tmp_path / "two.csv").delimiter == ","
    assert detect_csv_format(tmp_path / "two.csv", names=["c"]).delimiter == ";"
    assert sources.column_names(tmp_path / "two.csv", csv_format=CsvFormat(";")) == ["a,b", "c"]


@pytest.mark.parametrize(
    ("encoding", "message"),
    [(None, "not text in UTF-8: byte 2 is 0xf6"), ("klingon", "no encoding 'klingon'")],
)
def test_an_encoding_that_does_not_fit_is_refused(encoding, message, tmp_path):
    (tmp_path / "noten.csv").write_text(ROWS, encoding="cp1252")
    with pytest.raises(SourceError, match=message):
        detect_csv_format(tmp_path / "noten.csv", encoding=encoding)
