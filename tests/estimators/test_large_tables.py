"""Tables that are read block by block: the same model whatever brings the rows, and bad tables."""

import pickle

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import GPOR, ISBOR, sources
from isbor.data import large_tables
from isbor.data.encoding import learn_table
from isbor.data.schema import Schema

N = 5000
GRADES = ["poor", "fair", "good", "best"]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Searches take a sample of 1,600 rows, so that small tables are large ones."""
    monkeypatch.setattr(large_tables, "_SAMPLE_ROWS", 1600)


def ratings(n=N, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 3)), columns=list("abc"))
    frame["kind"] = random.choice(["tea", "ale", "gin"], n)
    score = frame["a"] + np.sin(2 * frame["b"]) + (frame["kind"] == "ale") + 0.4 * random.normal(size=n)
    frame.loc[random.random(n) < 0.1, "c"] = np.nan
    frame["grade"] = np.array(GRADES)[np.digitize(score, [-1, 0.2, 1.4])]
    return frame


@pytest.fixture(scope="module")
def table():
    return ratings()


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """The table as files, cut in several ways."""
    folder = tmp_path_factory.mktemp("tables")
    table.to_parquet(folder / "whole.parquet", index=False)
    table.to_csv(folder / "whole.csv", index=False)
    for name, cuts in {"three": [0, 1700, 1711, N], "even": [*range(0, N, 1000), N]}.items():
        (folder / name).mkdir()
        for k, (first, last) in enumerate(zip(cuts, cuts[1:], strict=False)):
            table.iloc[first:last].to_parquet(folder / name / f"part-{k}.parquet", index=False)
    return folder


def features(frame):
    return frame.drop(columns="grade")


def model(**parameters):
    return ISBOR(basis="mixed", effort="fast", classes=GRADES, **parameters)


@pytest.fixture(scope="module")
def in_memory(table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_tables, "_SAMPLE_ROWS", 1600)
        return model().fit(features(table), table["grade"])


def batches(table):
    for first in range(0, len(table), 777):
        part = table.iloc[first : first + 777]
        yield features(part), part["grade"]


SOURCES = {
    "a Parquet file": lambda table, files: sources.open_table(
        files / "whole.parquet", target="grade", block_rows=900
    ),
    "three Parquet files": lambda table, files: sources.open_table(files / "three", target="grade"),
    "a pattern": lambda table, files: sources.open_table(str(files / "even" / "*.parquet"), target="grade"),
    "a CSV file": lambda table, files: sources.open_table(
        files / "whole.csv", target="grade", block_rows=1234
    ),
    "a function": lambda table, files: sources.open_table(lambda: batches(table)),
    "a query of polars": lambda table, files: sources.open_table(
        pl.scan_parquet(files / "whole.parquet"), target="grade", block_rows=1000
    ),
    "a query of DuckDB": lambda table, files: sources.open_table(
        duckdb.sql(f"from '{files / 'whole.parquet'}'"), target="grade"
    ),
    "a data frame": lambda table, files: sources.open_table(table, target="grade", block_rows=999),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_gives_the_model_of_the_rows_in_memory(kind, table, files, in_memory):
    fitted = model().fit(SOURCES[kind](table, files))
    X = features(table)[:500]
    assert in_memory.n_relevance_ > 3
    assert_allclose(fitted.thresholds_, in_memory.thresholds_, atol=1e-6)
    assert_allclose(fitted.predict_proba(X), in_memory.predict_proba(X), atol=1e-6)
    for ours, theirs in zip(
        fitted.predict_proba_interval(X), in_memory.predict_proba_interval(X), strict=True
    ):
        assert_allclose(ours, theirs, atol=1e-6)
    assert_array_equal(fitted.relevance_, in_memory.relevance_)
    assert_allclose(fitted.relevance_vectors_, in_memory.relevance_vectors_, atol=1e-6)
    assert_array_equal(fitted.feature_names_in_, in_memory.feature_names_in_)
    assert_array_equal(fitted.column_names_, in_memory.column_names_)


def test_memory_maps_give_the_model_of_arrays(tmp_path):
    frame = ratings().drop(columns=["kind", "c"])
    X, y = frame[["a", "b"]].to_numpy(), frame["grade"].map(GRADES.index).to_numpy()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    here = ISBOR(basis="rbf").fit(X, y)
    there = ISBOR(basis="rbf").fit(sources.open_table((mapped, y), block_rows=800))
    assert_allclose(there.thresholds_, here.thresholds_, atol=1e-6)
    assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)


def test_a_source_of_few_rows_gives_the_same_bits_as_arrays(table, files):
    part = table[:900]
    here = model().fit(features(part), part["grade"])
    there = model().fit(sources.open_table(part, target="grade", block_rows=100))
    assert_array_equal(there.predict_proba(features(table)), here.predict_proba(features(table)))


def test_order_weights_and_threads_change_no_bit(table, in_memory):
    random = np.random.default_rng(1)
    twice = np.concatenate([np.arange(N), np.arange(300)])
    random.shuffle(twice)
    X, y, weight = features(table), table["grade"], np.where(np.arange(N) < 300, 2.0, 1.0)
    one = model(n_jobs=1).fit(X, y, sample_weight=weight)
    other = model(n_jobs=2).fit(X.iloc[twice], y.iloc[twice])
    assert_array_equal(other.thresholds_, one.thresholds_)
    assert_array_equal(other.predict_proba(X), one.predict_proba(X))


def test_all_rows_count_for_the_weights(table, in_memory):
    """The weights are at the mode of all rows: the gradient of the log posterior vanishes there."""
    alone = in_memory._model
    mode = alone.models[0].mode
    slope = mode.expansion.gradient[: len(mode.alpha)] - mode.alpha * mode.weights
    assert alone.models[0].n_rows == N
    curvature = np.diag(mode.expansion.precision)[: len(mode.alpha)] + mode.alpha
    assert np.max(np.abs(slope) / np.sqrt(curvature)) < 1e-3


def test_classes_weights_and_rare_classes(table):
    rows = table.assign(weight=np.where(table["grade"] == "best", 3.0, 1.0))
    rows.loc[rows.index[:2], "grade"] = "none"
    order = ["none", *GRADES]
    source = sources.open_table(rows, target="grade", weight="weight", block_rows=1000)
    fitted = model(class_weight={"fair": 0.5}).set_params(classes=order).fit(source)
    total = rows.groupby("grade")["weight"].sum()[order].to_numpy() * [1, 1, 0.5, 1, 1]
    far = pd.DataFrame({"a": [1e6], "b": [0.0], "c": [0.0], "kind": ["ale"]})
    assert_allclose(fitted.predict_proba(far)[0], total / total.sum(), atol=1e-3)  # drifts to the shares


def test_predictions_of_blocks_are_those_of_the_table(table, files, in_memory):
    source = sources.open_table(files / "three", target="grade", block_rows=500)
    parts = list(sources.map_blocks(in_memory.predict_proba, source))
    assert len(parts) > 8
    assert_allclose(np.concatenate(parts), in_memory.predict_proba(features(table)), atol=1e-12)


def test_passes_over_all_rows_are_recorded(in_memory):
    passes = [step for step in in_memory.trace_ if step.stage == "all rows"]
    assert {step.n_rows for step in passes} == {N}
    first, last = passes[0], passes[-1]
    assert last.log_evidence >= first.log_evidence
    assert in_memory.n_iter_ == last.pass_number


def bad(table, what):
    """Return a source with a defect in its third file."""
    parts = [table.iloc[i : i + 1000].copy() for i in range(0, N, 1000)]
    if what == "label":
        parts[4].loc[parts[4].index[7], "grade"] = "superb"
    elif what == "infinite":
        parts[2].loc[parts[2].index[3], "a"] = np.inf
    elif what == "label missing":
        parts[2].loc[parts[2].index[3], "grade"] = None
    elif what == "kind":
        parts[2]["kind"] = np.arange(1000.0)
    return sources.open_table(lambda: ((features(part), part["grade"]) for part in parts))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("label", r"batch 4.*label\(s\) not in classes: \['superb'\]"),
        ("infinite", r"batch 2.*contains inf in 1 cell\(s\), the first \(inf\) in row 3, column 'a'"),
        ("label missing", "batch 2.*1 of 1000 labels are missing.*row 3"),
        ("kind", "holds numbers in some blocks and categories, such as .* in others, in column 'kind'"),
    ],
)
def test_a_bad_block_is_named_and_the_estimator_stays_as_it_was(
    what, message, table, files, tmp_path, in_memory
):
    estimator = model().fit(features(table)[:200], table["grade"][:200])
    before = pickle.dumps(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.fit(bad(table, what))
    assert pickle.dumps(estimator) == before


def test_a_table_that_changes_between_passes_is_refused(table):
    calls = []

    def growing():
        calls.append(1)
        return batches(table.iloc[: 3000 + 10 * len(calls)])

    with pytest.raises(ValueError, match="pass"):
        model().fit(sources.open_table(growing))


def test_labels_belong_to_the_source(table):
    source = sources.open_table(table, target="grade")
    with pytest.raises(ValueError, match="labels and weights of its own. Leave out y"):
        model().fit(source, table["grade"])
    with pytest.raises(ValueError, match="target"):
        model().fit(sources.open_table(features(table)))


def test_a_path_is_not_a_table(files):
    with pytest.raises(
        TypeError, match=r"X is the path '.*whole.csv'; rows are needed. Open the file: isbor"
    ):
        model().fit(files / "whole.csv")


def test_models_that_need_their_rows_in_memory_say_so(table):
    with pytest.raises(ValueError, match="GPOR needs its rows in memory, at most 1600 of them"):
        GPOR(classes=GRADES).fit(sources.open_table(table, target="grade"))


def test_a_model_of_a_source_goes_on_with_batches(table, files):
    parts = np.array_split(np.arange(N), [4000])
    first, last = (table.iloc[part] for part in parts)
    fitted = model().fit(sources.open_table(first, target="grade"))
    kept = fitted._stream.kept
    assert_allclose(kept.reservoir.of_class, first["grade"].value_counts()[GRADES], rtol=1e-6)
    before = fitted.score(features(last), last["grade"])
    fitted.partial_fit(features(last), last["grade"])
    assert fitted.score(features(last), last["grade"]) > before - 0.02
    assert fitted._stream.kept.reservoir.seen == pytest.approx(N)


def test_encoded_rows_are_decoded():
    frame = ratings(200).drop(columns="grade").assign(size=pd.Categorical(["s", "m"] * 100, ordered=True))
    frame.loc[::7, "kind"] = None
    encoding, matrix = learn_table("ISBOR", frame)
    schema, cells = Schema.of("ISBOR", frame, "auto")
    assert_array_equal(
        Schema.of_encoding(encoding).contents(encoding.decoded(matrix)), schema.contents(cells)
    )
