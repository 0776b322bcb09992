"""A table is the same rows in the same order, whatever holds it and however it is cut."""

import gzip
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isbor import KDLOR, sources
from isbor.data.blocks import Source
from isbor.sources import csv_files, parquet_files
from isbor.sources.cutting import recut
from tests.sources.reading import read, wheres

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
import pyarrow.csv  # noqa: E402
import pyarrow.dataset  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

N = 101
rng = np.random.default_rng(0)
TABLE = pa.table(
    {
        "id": range(N),
        "age": [None if i % 10 == 3 else i % 50 for i in range(N)],
        "length": [None if i % 7 == 2 else float(x) for i, x in enumerate(rng.normal(size=N))],
        "color": [
            None if i % 9 == 4 else ("red", "NA", "blue, light", "two\nlines")[i % 4] for i in range(N)
        ],
        "stars": [1 + i % 5 for i in range(N)],
        "w": [0.5 + i % 3 for i in range(N)],
    }
)
ROLES = {"target": "stars", "weight": "w", "ignore": "id"}
ROWS = list(zip(*(TABLE[name].to_pylist() for name in ("age", "length", "color", "stars", "w")), strict=True))
polars_has_batches = pytest.mark.skipif(
    not hasattr(pl.LazyFrame, "collect_batches"), reason="this polars gives no batches"
)


def csv_bytes(table):
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def one_parquet(folder):
    pq.write_table(TABLE, folder / "all.parquet", row_group_size=40)
    return folder / "all.parquet"


def parquet_parts(folder):
    """Write three files, one of which has no rows, and another with the columns in another order."""
    (folder / "parts").mkdir()
    pq.write_table(TABLE[:13], folder / "parts" / "a.parquet")
    pq.write_table(TABLE[13:13], folder / "parts" / "b.parquet")
    pq.write_table(
        TABLE[13:].select(TABLE.column_names[::-1]), folder / "parts" / "c.parquet", row_group_size=9
    )
    (folder / "parts" / "_SUCCESS").touch()
    (folder / "parts" / "notes.txt").touch()
    return folder / "parts"


def one_csv(folder):
    (folder / "all.csv").write_bytes(csv_bytes(TABLE))
    return folder / "all.csv"


def gzipped_parts(folder):
    for name, part in (("1.csv.gz", TABLE[:60]), ("2.csv.gz", TABLE[60:60]), ("3.csv.gz", TABLE[60:])):
        (folder / name).write_bytes(gzip.compress(csv_bytes(part)))
    (folder / "0.csv.gz").write_bytes(gzip.compress(b""))
    (folder / "4.csv").touch()
    return [folder / f"{i}.csv.gz" for i in range(4)] + [str(folder / "4.csv")]


def bz2_and_tsv(folder):
    import bz2

    (folder / "1.csv.bz2").write_bytes(bz2.compress(csv_bytes(TABLE[:70])))
    options = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(TABLE[70:], folder / "2.tsv", options)
    return [folder / "1.csv.bz2", folder / "2.tsv"]


def dictionaries(folder):
    """Write text as dictionaries, which differ between row groups and files, and as large strings."""
    for i, part in enumerate([TABLE[:50], TABLE[50:80], TABLE[80:]]):
        text = part["color"].cast(pa.large_string()) if i == 1 else part["color"].dictionary_encode()
        part = part.set_column(3, "color", text)
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=11)
    return folder


def arrow_stream(folder):
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_batches(TABLE.to_batches(max_chunksize=17)).__arrow_c_stream__(
                requested_schema
            )

    return Stream()


NAMED = {
    "one Parquet file": one_parquet,
    "a pattern": lambda folder: str(parquet_parts(folder) / "*.parquet"),
    "a folder": parquet_parts,
    "files of a list": lambda folder: sorted(map(str, parquet_parts(folder).glob("*.parquet"))),
    "one CSV file": one_csv,
    "gzipped CSV files, some empty": gzipped_parts,
    "bzip2 and tabs": bz2_and_tsv,
    "dictionaries": dictionaries,
    "an Arrow table": lambda folder: TABLE,
    "an Arrow table in chunks": lambda folder: pa.Table.from_batches(TABLE.to_batches(max_chunksize=7)),
    "a record batch": lambda folder: TABLE.combine_chunks().to_batches()[0],
    "an Arrow dataset": lambda folder: pyarrow.dataset.dataset(
        sorted(map(str, parquet_parts(folder).glob("*.parquet")))
    ),
    "an Arrow stream": arrow_stream,
    "a polars frame": lambda folder: pl.from_arrow(TABLE),
    "a lazy frame": pytest.param(lambda folder: pl.from_arrow(TABLE).lazy(), marks=polars_has_batches),
    "a scan": pytest.param(lambda folder: pl.scan_parquet(one_parquet(folder)), marks=polars_has_batches),
    "a pandas frame": lambda folder: TABLE.to_pandas(),
    "a DuckDB relation": lambda folder: duckdb.from_arrow(TABLE).order("id"),
}


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("block_rows", [1, 8, 40, 65_536])
def test_all_that_has_columns_gives_the_same_rows_in_each_pass(make, block_rows, tmp_path):
    table = sources.open_table(make(tmp_path), **ROLES, block_rows=block_rows)
    assert isinstance(table, Source)
    assert read(table, block_rows) == ROWS
    assert read(table, block_rows) == ROWS
    next(table.blocks())  # a pass that is not finished
    assert read(table, block_rows) == ROWS


X = np.arange(3.0 * N).reshape(N, 3)
Y = 1 + np.arange(N) % 5
W = 0.5 + np.arange(N) % 3
ARRAY_ROWS = [(*x, y, w) for x, y, w in zip(X.tolist(), Y.tolist(), W.tolist(), strict=True)]


def memory_maps(folder):
    for name, array in {"X": X, "y": Y, "w": W}.items():
        np.save(folder / f"{name}.npy", array)
    return tuple(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("X", "y", "w"))


def batches_of(sizes, convert=lambda part: part):
    def batches():
        cuts = np.cumsum([0, *sizes])
        for first, stop in zip(cuts[:-1], cuts[1:], strict=True):
            yield convert(X[first:stop]), Y[first:stop], W[first:stop]

    return batches


UNNAMED = {
    "arrays": lambda folder: (X, Y, W),
    "memory maps": memory_maps,
    "a frame and columns": lambda folder: (pd.DataFrame(X, columns=list("abc")), pl.Series(Y), list(W)),
    "batches": lambda folder: batches_of([50, 0, 1, 50]),
    "batches of frames": lambda folder: batches_of([90, 11], lambda x: pl.DataFrame(x, schema=list("abc"))),
    "lists": lambda folder: batches_of([101], lambda x: x.tolist()),
}


@pytest.mark.parametrize("make", UNNAMED.values(), ids=UNNAMED)
@pytest.mark.parametrize("block_rows", [1, 8, 40, 65_536])
def test_all_that_has_no_columns_gives_the_same_rows_in_each_pass(make, block_rows, tmp_path):
    table = sources.open_table(make(tmp_path), block_rows=block_rows)
    assert read(table, block_rows) == ARRAY_ROWS
    assert read(table, block_rows) == ARRAY_ROWS


def test_arrays_are_not_copied(tmp_path):
    arrays = memory_maps(tmp_path)
    for block in sources.open_table(arrays, block_rows=30).blocks():
        for part, whole in zip((block.X, block.y, block.weight), arrays, strict=True):
            assert np.shares_memory(part, whole)


@pytest.mark.parametrize("data", [X, (X, None), lambda: iter([(X[:60], None), (X[60:], None)])])
def test_labels_are_not_needed(data):
    blocks = list(sources.open_table(data, block_rows=50).blocks())
    assert all(block.y is None and block.weight is None for block in blocks)
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_a_table_without_target_has_features_only(make, tmp_path):
    table = sources.open_table(make(tmp_path), columns=["color", "age"])
    assert read(table) == [(row[2], row[0]) for row in ROWS]
    assert all(block.y is None and block.weight is None for block in table.blocks())


@given(
    sizes=st.lists(st.integers(0, 12), max_size=10),
    block_rows=st.integers(1, 15),
)
def test_pieces_are_cut_anew_whatever_their_sizes(sizes, block_rows):
    cuts = np.cumsum([0, *sizes]).tolist()
    rows = pa.table({"i": range(cuts[-1])})
    pieces = (rows.slice(first, size) for first, size in zip(cuts, sizes, strict=False))
    blocks = list(recut(pieces, block_rows, pa.concat_tables))
    assert [i for block in blocks for i in block["i"].to_pylist()] == list(range(cuts[-1]))
    assert [len(block) for block in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
    assert len(blocks) == math.ceil(cuts[-1] / block_rows)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, N), block_rows=st.integers(1, 120), group=st.integers(1, 120))
def test_the_cut_into_files_changes_no_row(tmp_path, cut, block_rows, group):
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    pq.write_table(TABLE[:cut], paths[0], row_group_size=group)
    pq.write_table(TABLE[cut:], paths[1], row_group_size=group)
    assert read(sources.open_table(paths, **ROLES, block_rows=block_rows), block_rows) == ROWS


def test_blocks_name_the_rows_of_their_file(tmp_path):
    parts = parquet_parts(tmp_path)
    assert wheres(sources.open_table(parts, **ROLES, block_rows=50)) == [
        *("a.parquet, rows 0 to 12", "c.parquet, rows 0 to 49", "c.parquet, rows 50 to 87"),
    ]
    assert wheres(sources.open_table(TABLE, **ROLES, block_rows=100)) == ["rows 0 to 99", "row 100"]
    table = sources.open_table(batches_of([60, 41]), block_rows=50)
    assert wheres(table) == ["batch 0, rows 0 to 49", "batch 0, rows 50 to 59", "batch 1, rows 60 to 100"]


def test_files_of_the_same_name_are_named_with_their_folders(tmp_path):
    for folder, part in (("a", TABLE[:50]), ("b", TABLE[50:])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_bytes(csv_bytes(part))
    table = sources.open_table(tmp_path / "**" / "*.csv", **ROLES)
    assert wheres(table)[1] == f"{tmp_path / 'b' / 'x.csv'}, rows 0 to 50"
    assert read(table) == ROWS


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_a_file_is_never_in_memory_as_a_whole(name, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "_CHUNK", 1 << 14)
    monkeypatch.setattr(parquet_files, "_BUFFER", 1 << 14)
    rows = pa.table({name: rng.normal(size=800_000) for name in ("a", "b", "c")})
    if name == "x.csv":
        pyarrow.csv.write_csv(rows[:150_000], tmp_path / name)
    else:
        pq.write_table(rows, tmp_path / name, row_group_size=len(rows), use_dictionary=False)
    del rows
    size = (tmp_path / name).stat().st_size
    before = pa.total_allocated_bytes()
    blocks = sources.open_table(tmp_path / name, block_rows=1000).blocks()
    held = max(pa.total_allocated_bytes() - before for _ in blocks)
    assert held < size / 2 and size > 8e6


# --- Types --------------------------------------------------------------------------------------------------


def test_blocks_of_files_are_arrow_tables_of_plain_types(tmp_path):
    for block in sources.open_table(dictionaries(tmp_path), **ROLES, block_rows=30).blocks():
        assert block.X.schema == pa.schema({"age": pa.int64(), "length": pa.float64(), "color": pa.string()})
        assert isinstance(block.y, pa.ChunkedArray)
        assert isinstance(block.weight, np.ndarray)


def test_ordered_dictionaries_and_categories_that_are_no_text_stay(tmp_path):
    sizes = pd.Categorical(["S", "L", "S"], ["S", "M", "L"], ordered=True)
    frame = pd.DataFrame({"size": sizes, "zone": pd.Categorical([7, 8, 7])})
    frame.to_parquet(tmp_path / "x.parquet")
    for data in (tmp_path / "x.parquet", pa.Table.from_pandas(frame)):
        (block,) = sources.open_table(data).blocks()
        size = block.X.to_pandas()["size"].dtype
        assert size.ordered and list(size.categories) == ["S", "M", "L"]
    assert pa.types.is_dictionary(block.X.schema.field("zone").type)  # a file has categories of text only


def test_frames_keep_their_types():
    size = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
    frame = pd.DataFrame({"size": pd.Series(["S", "L", "M"], dtype=size), 0: [1, 2, 3], 1: [1, 2, 1]})
    blocks = list(sources.open_table(frame, target=1, block_rows=2).blocks())
    pd.testing.assert_frame_equal(pd.concat([block.X for block in blocks]), frame[["size", 0]])
    pd.testing.assert_series_equal(pd.concat([block.y for block in blocks]), frame[1])


@polars_has_batches
def test_lazy_frames_keep_the_order_of_an_enum():
    frame = pl.DataFrame({"size": pl.Series(["S", "L"], dtype=pl.Enum(["S", "M", "L"])), "y": [1, 2]})
    (block,) = sources.open_table(frame.lazy(), target="y").blocks()
    assert block.X.equals(frame.select("size"))


def test_numbers_of_several_types_become_one_and_columns_without_cells_are_numbers(tmp_path):
    for i, column in enumerate(([1, 2], [0.5], [None, None])):
        pq.write_table(pa.table({"x": column, "e": pa.nulls(len(column))}), tmp_path / f"{i}.parquet")
    table = sources.open_table(tmp_path)
    assert {str(block.X.schema.types) for block in table.blocks()} == {"[DataType(double), DataType(double)]"}
    assert [row[0] for row in read(table)] == [1.0, 2.0, 0.5, None, None]


# --- Which columns are read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pick", [{"columns": ["a"]}, {"ignore": ["broken", "id"]}])
def test_other_columns_are_not_read(pick, tmp_path):
    """Damage the pages of a column: only those who read it can tell."""
    marker = [f"<{i:06}>" for i in range(500)]
    table = pa.table({"a": range(500), "broken": marker, "id": range(500), "y": [1, 2] * 250})
    pq.write_table(table, tmp_path / "x.parquet", compression="none", use_dictionary=False)
    content = (tmp_path / "x.parquet").read_bytes()
    start = content.index(b"<000000>")
    (tmp_path / "x.parquet").write_bytes(content[: start - 4] + bytes([255]) * 20 + content[start + 16 :])
    rows = read(sources.open_table(tmp_path / "x.parquet", target="y", **pick))
    assert rows == [(i, 1 + i % 2) for i in range(500)]
    with pytest.raises(sources.SourceError, match=r"x\.parquet cannot be read as Parquet"):
        read(sources.open_table(tmp_path / "x.parquet", target="y"))


def test_later_files_may_have_more_columns_if_the_features_are_listed(tmp_path):
    (tmp_path / "1.csv").write_text("a,y\n1,1\n")
    (tmp_path / "2.csv").write_text("new,y,a\n?,2,3\n")
    assert read(sources.open_table(tmp_path, target="y", columns="a")) == [(1, 1), (3, 2)]


def test_the_index_that_pandas_saves_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [1, 2, 1, 2]})
    frame[frame["a"] != 2].to_parquet(tmp_path / "x.parquet")
    table = sources.open_table(tmp_path / "x.parquet", target="y")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "x.parquet").names
    assert read(table) == [(1.0, 1), (3.0, 1), (4.0, 2)]
    both = sources.open_table(tmp_path / "x.parquet", columns=["a", "__index_level_0__"])
    assert read(both) == [(1.0, 0), (3.0, 2), (4.0, 3)]


# --- Prediction ---------------------------------------------------------------------------------------------


def test_a_method_is_applied_to_each_block_in_order():
    table = sources.open_table((X, Y), block_rows=40)
    results = list(sources.map_blocks(lambda x: x[:, 0], table))
    np.testing.assert_array_equal(np.concatenate(results), X[:, 0])
    assert [len(result) for result in results] == [40, 40, 21]


@pytest.mark.parametrize("make", [one_parquet, gzipped_parts, lambda folder: pl.from_arrow(TABLE)])
def test_a_model_says_the_same_of_blocks_as_of_the_whole(make, tmp_path):
    features = ["age", "length", "color"]
    frame = TABLE.select(features).to_pandas()
    model = KDLOR().fit(frame, TABLE["stars"].to_numpy())
    table = sources.open_table(make(tmp_path), columns=features, block_rows=30)
    np.testing.assert_allclose(
        np.concatenate(list(sources.map_blocks(model.predict_proba, table))),
        model.predict_proba(frame),
        rtol=1e-9,
    )


def test_an_error_says_in_which_block_it_arose(tmp_path):
    def refuse(frame):
        if 60 in frame["id"].to_pylist():
            raise ValueError("X holds 60.")
        return len(frame)

    pq.write_table(TABLE[:30], tmp_path / "a.parquet")
    pq.write_table(TABLE[30:], tmp_path / "b.parquet")
    results = sources.map_blocks(refuse, sources.open_table(tmp_path, block_rows=25))
    assert [next(results) for _ in range(3)] == [25, 5, 25]
    message = r"^In b\.parquet, rows 25 to 49 \(row 55 of the table is row 0 below\): X holds 60\.$"
    with pytest.raises(ValueError, match=message) as caught:
        next(results)
    assert str(caught.value.__cause__) == "X holds 60."


def test_only_a_source_has_blocks():
    with pytest.raises(TypeError, match=r"A table from open_table is needed, got ndarray\. Pass sources"):
        sources.map_blocks(len, X)
