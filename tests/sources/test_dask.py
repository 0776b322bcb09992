"""Fits and predictions of Dask collections, with workers in processes of their own."""

import os
import pickle
import signal
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from isbor import ISBOR, sources
from isbor.data import large_tables
from isbor.sources import SourceError, dask_collections
from isbor.sources.dask_graphs import merged_in_a_tree
from isbor.sources.dask_tasks import Result
from tests.sources.reading import cells, read, wheres

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from dask.utils import key_split  # noqa: E402

N = 6000
SAMPLE = 800


def make_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    kind = rng.integers(0, 3, N)
    score = frame["a"] + np.sin(2.0 * frame["b"]) + 0.5 * kind + 0.4 * rng.normal(size=N)
    frame["kind"] = np.array(["u", "v", "w"])[kind]
    frame["stars"] = 1 + np.digitize(score, [-1.0, 0.0, 1.0])
    frame["times"] = rng.integers(0, 3, N).astype(np.float64)
    frame.loc[rng.random(N) < 0.1, "c"] = np.nan
    return frame


FRAME = make_frame()
FEATURES = ["a", "b", "c", "kind"]
X = FRAME[["a", "b"]].to_numpy()
Y = FRAME["stars"].to_numpy()
ROLES = {"target": "stars", "weight": "times"}


def model():
    return ISBOR(effort="fast", n_jobs=1)


def dask_frame(n_partitions=11):
    """Return the rows in partitions with categories of their own, two of them empty."""
    frame = dd.from_pandas(FRAME, npartitions=n_partitions)
    frame = frame.assign(kind=frame["kind"].astype("category"))
    assert not frame["kind"].cat.known
    return dd.concat([frame.loc[:2499], frame[frame["a"] > 100.0].partitions[:2], frame.loc[2500:]])


def dask_arrays():
    return da.from_array(X, chunks=(700, 1)), da.from_array(Y, chunks=900)


def assert_same_fit(fitted, expected, X):
    np.testing.assert_allclose(fitted.thresholds_, expected.thresholds_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-6)


@pytest.fixture(scope="module", autouse=True)
def few_rows_are_many():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_tables, "_SAMPLE_ROWS", SAMPLE)
        yield


@pytest.fixture(scope="module")
def of_frame():
    return model().fit(FRAME[FEATURES], FRAME["stars"], FRAME["times"])


@pytest.fixture(scope="module")
def of_arrays():
    return model().fit(X, Y)


@contextmanager
def cluster_of(n_workers):
    settings = {
        "distributed.comm.timeouts.connect": "60s",
        "distributed.scheduler.allowed-failures": 10,  # a task may be queued where several workers die
    }
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=n_workers, **options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
        client.wait_for_workers(n_workers, timeout=60)  # a worker that has not begun cannot be closed


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture
def graphs(monkeypatch):
    """Return a list to which all graphs are added that are computed."""
    found = []

    def computed(graph, key):
        found.append(dict(graph))
        return computed_before(graph, key)

    computed_before = dask_collections.computed
    monkeypatch.setattr(dask_collections, "computed", computed)
    return found


# --- The same fit -------------------------------------------------------------------------------------------


def check_fits(of_frame, of_arrays):
    fitted = model().fit(sources.open_table(dask_frame(), **ROLES, block_rows=400))
    assert_same_fit(fitted, of_frame, FRAME[FEATURES])
    assert fitted.n_features_in_ == 4 and list(fitted.column_names_) == list(of_frame.column_names_)
    assert_same_fit(model().fit(sources.open_table(dask_arrays())), of_arrays, X)


@pytest.mark.parametrize("n_workers", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_fit_does_not_depend_on_the_workers(n_workers, of_frame, of_arrays):
    with cluster_of(n_workers):
        check_fits(of_frame, of_arrays)


def test_a_fit_on_two_workers(client, of_frame, of_arrays):
    check_fits(of_frame, of_arrays)


def test_a_fit_on_threads(threads, of_frame):
    fitted = model().fit(sources.open_table(dask_frame(3), **ROLES))
    assert_same_fit(fitted, of_frame, FRAME[FEATURES])


def test_persisted_rows_and_files(client, of_frame, tmp_path):
    FRAME.to_parquet(tmp_path / "x.parquet", row_group_size=1000)
    frame = dd.read_parquet(tmp_path / "x.parquet", split_row_groups=True)
    for collection in (frame, frame.persist()):
        table = sources.open_table(collection, **ROLES, columns=FEATURES)
        assert_same_fit(model().fit(table), of_frame, FRAME[FEATURES])


def test_derived_columns_and_a_shuffle(client):
    frame = dask_frame()[["a", "b", "stars"]]
    frame = frame.assign(d=frame["a"] + frame["b"]).shuffle("stars", npartitions=3)
    rows = frame.compute()
    expected = model().fit(rows[["a", "b", "d"]], rows["stars"])
    fitted = model().fit(sources.open_table(frame, target="stars"))
    assert_same_fit(fitted, expected, rows[["a", "b", "d"]])


# --- What travels -------------------------------------------------------------------------------------------


def sent_by_workers(client):
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


class Totals:
    """Totals of a block, with a label and an order."""

    label = "totals"

    def __call__(self, block):
        return [(block.first, len(block.y), block.where)], block.y.to_numpy().sum()


def both(one, other):
    return one[0] + other[0], one[1] + other[1]


def test_only_summaries_travel(client, graphs):
    table = sources.open_table(dask_frame().persist(), **ROLES, block_rows=400)
    table.summarised(Totals(), both)
    sent = []
    for _ in range(4):  # workers send word of themselves as well, at any time
        before = sent_by_workers(client)
        parts, total = table.summarised(Totals(), both)
        assert total == Y.sum()
        sent.append(sent_by_workers(client) - before)
    assert 0 < min(sent) < 0.1 * FRAME.memory_usage().sum()
    assert [part[0] for part in parts] == np.cumsum([0, *(part[1] for part in parts)])[:-1].tolist()
    assert {key_split(key) for key in graphs[-1] if "totals" in str(key)} == {
        *("isbor-totals", "isbor-totals-work", "isbor-totals-merge")
    }


def test_what_the_client_receives_in_a_fit(client, monkeypatch):
    received = {}

    def computed(graph, key):
        result = computed_before(graph, key)
        label = key_split(key)
        received[label] = max(received.get(label, 0), len(pickle.dumps(result)))
        return result

    computed_before = dask_collections.computed
    monkeypatch.setattr(dask_collections, "computed", computed)
    model().fit(sources.open_table(dask_frame(), **ROLES))
    steps = {"isbor-lengths-all", "isbor-survey-merge", "isbor-sample-merge", "isbor-pass-merge"}
    assert received.keys() == steps
    of_a_row = 8 * (len(FEATURES) + 10)
    assert received.pop("isbor-sample-merge") < 2.5 * SAMPLE * of_a_row
    assert max(received.values()) < 100_000


def test_a_partition_is_read_in_the_task_that_summarises_it(threads, graphs, tmp_path):
    FRAME.to_parquet(tmp_path / "x.parquet", row_group_size=1000)
    frame = dd.read_parquet(tmp_path / "x.parquet", split_row_groups=True)
    frame = frame.assign(d=frame["a"] + frame["b"])
    parts, _ = sources.open_table(frame, **ROLES).summarised(Totals(), both)
    assert parts == [(1000 * i, 1000, f"partition {i}, rows 0 to 999") for i in range(6)]
    (graph,) = graphs  # lengths come from the file's metadata
    names = [key_split(key) for key in graph]
    assert {name: names.count(name) for name in names} == {
        "isbor-totals": 6,
        "isbor-totals-work": 1,
        "isbor-totals-merge": 1,
    }


def test_dask_knows_the_size_of_a_summary():
    small, large = (dask.sizeof.sizeof(Result({"a": np.zeros(n)})) for n in (0, 100_000))
    assert 0 < small < 1000 and 800_000 <= large - small < 801_000


def test_results_are_merged_in_a_tree():
    graph = {}
    keys = [("x", i) for i in range(70)]
    last = merged_in_a_tree(graph, keys, "merge", lambda *parts: sum(parts, []))
    assert last == ("merge", 2, 0) and len(graph) == 9 + 2 + 1
    values = {key: [i] for i, key in enumerate(keys)}
    for key, task in graph.items():
        values[key] = task(values)
    assert values[last] == list(range(70))


# --- Workers that die ---------------------------------------------------------------------------------------


def deadly(rows, folder, kills):
    """Return rows, but kill this process at some of the times when rows are read."""
    number = 0
    while True:
        try:
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            number += 1
    time.sleep(0.01)
    if number in kills:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def check_kills(client, tmp_path, kills, n_partitions):
    frame = dd.from_pandas(FRAME, npartitions=n_partitions)
    with dask.config.set(scheduler="threads"):
        expected = model().fit(sources.open_table(frame, **ROLES))
    table = frame.map_partitions(deadly, str(tmp_path), kills, meta=frame._meta)
    client.wait_for_workers(2, timeout=60)
    fitted = model().fit(sources.open_table(table, **ROLES))
    assert (fitted.thresholds_ == expected.thresholds_).all()
    assert (fitted.predict_proba(FRAME[FEATURES]) == expected.predict_proba(FRAME[FEATURES])).all()
    assert len(os.listdir(tmp_path)) > max(kills)  # all have happened


def test_a_fit_survives_workers_that_are_killed(client, tmp_path):
    check_kills(client, tmp_path, {15, 27, 40}, 11)


@pytest.mark.slow
def test_a_fit_survives_ten_kills(client, tmp_path):
    check_kills(client, tmp_path, set(range(8, 128, 12)), 24)


# --- Rows ---------------------------------------------------------------------------------------------------


def test_blocks_have_all_rows_in_order(threads):
    table = sources.open_table(dask_frame(), **ROLES, columns=FEATURES, block_rows=300)
    expected = cells(FRAME[[*FEATURES, "stars", "times"]])
    assert read(table, 300) == expected
    assert read(table, 300) == expected
    assert wheres(table)[1:3] == ["partition 0, rows 300 to 545", "partition 1, rows 0 to 299"]
    arrays = sources.open_table(dask_arrays(), block_rows=300)
    assert read(arrays, 300) == [(*x, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    assert repr(arrays) == "<Dask table of 9 partitions>"


def test_arrays_of_unknown_length(threads):
    frame = dd.from_pandas(FRAME, npartitions=5)
    parts = frame[["a", "b"]].to_dask_array(), frame["stars"].to_dask_array(), frame["times"].to_dask_array()
    rows = read(sources.open_table(parts))
    assert rows == cells(FRAME[["a", "b", "stars", "times"]])
    with pytest.raises(SourceError, match=r"X has 5 chunks of rows and y has 7, .*compute_chunk_sizes"):
        sources.open_table((parts[0], da.from_array(Y, chunks=900)))


# --- Predictions --------------------------------------------------------------------------------------------


def test_predictions_of_a_frame_are_a_lazy_frame(client, of_frame):
    table = sources.open_table(dask_frame(), columns=FEATURES, block_rows=400)
    probabilities = sources.map_blocks(of_frame.predict_proba, table)
    assert isinstance(probabilities, dd.DataFrame) and list(probabilities.columns) == [1, 2, 3, 4]
    found = probabilities.compute()
    np.testing.assert_array_equal(found.index, FRAME.index)
    np.testing.assert_allclose(found, of_frame.predict_proba(FRAME[FEATURES]), rtol=0, atol=1e-12)
    for method in (of_frame.predict, of_frame.latent):
        lazy = sources.map_blocks(method, table)
        assert isinstance(lazy, dd.Series)
        expected = method(FRAME[FEATURES])
        assert lazy.dtype == expected.dtype
        np.testing.assert_allclose(lazy.compute(), expected, rtol=0, atol=1e-12)


def test_predictions_of_arrays_are_lazy_arrays(client, of_arrays):
    table = sources.open_table(dask_arrays()[0])
    for method in (of_arrays.predict_proba, of_arrays.predict, of_arrays.latent):
        lazy, expected = sources.map_blocks(method, table), method(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=0, atol=1e-12)


def test_the_model_is_once_in_the_graph(of_frame, of_arrays):
    for fitted, collection in ((of_frame, dask_frame()[FEATURES]), (of_arrays, dask_arrays()[0])):
        size = len(pickle.dumps(fitted))
        lazy = sources.map_blocks(fitted.predict_proba, sources.open_table(collection))
        optimized = lazy.optimize() if isinstance(lazy, dd.DataFrame) else dask.optimize(lazy)[0]
        graph = dict(optimized.__dask_graph__())
        large = [key for key, task in graph.items() if len(pickle_of(task)) > size / 2]
        assert len(large) == 1


def pickle_of(task):
    from distributed.protocol.pickle import dumps

    return dumps(task)


def test_functions_without_an_array_are_refused(threads, of_arrays):
    table = sources.open_table(dask_arrays()[0])
    message = r"In partition 0, .* returned tuple; an array with a row for each row of X is needed"
    with pytest.raises(TypeError, match=message):
        sources.map_blocks(of_arrays.predict_proba_interval, table)
    low = sources.map_blocks(lambda X: of_arrays.predict_proba_interval(X)[0], table)
    np.testing.assert_allclose(low[:100], of_arrays.predict_proba_interval(X[:100])[0], rtol=0, atol=1e-12)


# --- Errors -------------------------------------------------------------------------------------------------


def spoil(rows, what):
    if 1200 in rows.index:
        if what == "fail":
            raise RuntimeError("The disk is gone.")
        rows = rows.assign(a=rows["a"].where(rows.index != 1200, np.inf))
    return rows


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("fail", RuntimeError, r"^The disk is gone\.$"),
        (
            "inf",
            ValueError,
            r"^In partition 2, rows 0 to 545 \(row \d+ of the table is row 0 below\): X contains .* row 108",
        ),
    ],
)
def test_errors_of_workers_keep_their_type_and_message(client, what, kind, message):
    frame = dd.from_pandas(FRAME, npartitions=11)
    table = sources.open_table(frame.map_partitions(spoil, what, meta=frame._meta), **ROLES)
    with pytest.raises(kind, match=message) as caught:
        model().fit(table)
    assert type(caught.value) is kind


def shrink(rows, folder):
    os.close(os.open(f"{folder}/{time.monotonic_ns()}", os.O_CREAT))
    return rows[: 9 if len(os.listdir(folder)) > 1 else 10]


def test_a_table_that_changes_between_passes(threads, tmp_path):
    frame = dd.from_pandas(FRAME, npartitions=1)
    table = sources.open_table(frame.map_partitions(shrink, str(tmp_path), meta=frame._meta), **ROLES)
    with pytest.raises(SourceError, match=r"^Partition 0 has 9 rows in this pass, 10 in the one before; "):
        model().fit(table)


def test_tables_without_rows(threads):
    frame = dd.from_pandas(FRAME, npartitions=3)
    with pytest.raises(SourceError, match="^The Dask collection has no rows; at least one is needed"):
        model().fit(sources.open_table(frame[frame["a"] > 100.0], **ROLES))


def test_a_collection_is_not_fetched_unasked(of_frame):
    frame, (rows, labels) = dask_frame(), dask_arrays()
    message = r"^X is a Dask DataFrame, .* To fit, pass sources\.open_table\(X, target=…\) alone\."
    for call in (
        lambda: ISBOR().fit(frame),
        lambda: ISBOR().fit(frame[FEATURES], frame["stars"]),
        lambda: of_frame.predict(frame),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(TypeError, match=r"^X is a Dask Array, .* pass sources\.open_table\(\(X, y\)\) alone"):
        ISBOR().fit(rows, labels)
    with pytest.raises(TypeError, match=r"^A table from open_table is needed, got DataFrame\."):
        sources.map_blocks(of_frame.predict, frame)
    with pytest.raises(TypeError, match=r"^A table from open_table is needed, got Array\."):
        sources.map_blocks(of_frame.predict, rows)


def test_collections_that_are_no_table():
    rows, labels = dask_arrays()
    frame = dask_frame()
    for data, message in (
        ((rows, Y), r"^X is a Dask array and y is of type ndarray; Dask arrays are needed"),
        ((rows, labels, Y), r"^X, y is a Dask array and weight is of type ndarray"),
        ((rows[:, 0], labels), r"^X has the shape \(6000,\); 2 axes are needed"),
        ((rows[:-1], labels), r"^X has 5999 rows and y has 6000; both need the same number"),
    ):
        with pytest.raises(SourceError, match=message):
            sources.open_table(data)
    with pytest.raises(SourceError, match=r"^target names 'star', .* mean 'stars'"):
        sources.open_table(frame, target="star")
    with pytest.raises(SourceError, match=r"^target cannot be used with tuple, which has no named"):
        sources.open_table((rows, labels), target="stars")
