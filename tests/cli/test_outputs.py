"""Tables that commands write."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, characters, floats, integers, lists, none, one_of, text, tuples

from isbor.cli.modelling.outputs import table_writer

WORDS = one_of(none(), text(characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
ROWS = tuples(WORDS, one_of(none(), floats()), integers(-(2**63), 2**63 - 1), one_of(none(), booleans()))


@pytest.mark.parametrize(("name", "delimiter"), [("out.csv", ","), ("out.tsv", "\t")])
@given(blocks=lists(lists(ROWS, min_size=1, max_size=5), min_size=1, max_size=3))
def test_lines_are_those_of_the_csv_module(name, delimiter, blocks, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / name
    names = ["my, words", 'a "number"', "whole", "truth"]
    types = [pa.string(), pa.float64(), pa.int64(), pa.bool_()]
    with table_writer(str(path)) as write:
        for rows in blocks:
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)
            ]
            write(pa.table(columns, names))
    text = path.read_bytes().decode()
    found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    assert found[0] == names
    for row, (word, number, whole, truth) in zip(found[1:], sum(blocks, []), strict=True):
        assert row[0] == (word or "")
        assert row[2:] == [str(whole), "" if truth is None else str(truth)]
        assert row[1] == "" if number is None else repr(float(row[1])) == repr(number)
    assert text == "".join(f"{line(row, delimiter)}\n" for row in found)


def line(cells, delimiter):
    """Return a row as the csv module has it: only cells with a delimiter, quote or line end have quotes."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n")
