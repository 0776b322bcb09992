"""Samples and surveys of tables that are read block by block."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.blocks import Block
from isbor.data.encoding import learn_table
from isbor.data.moments import Moments, steady
from isbor.data.order import Grid, exact_keys
from isbor.data.sample import EncodedRows, RowSample
from isbor.data.survey import BlockSurvey, Survey


def rows(n, seed, n_distinct=None):
    """Rows, some of them equal; the label is the last column."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(n_distinct or n, 2)).round(3)
    y = (values.sum(axis=1) > 0).astype(np.intp)
    y[values[:, 0] > 2.2] = 2  # a rare class
    chosen = np.arange(n) if n_distinct is None else random.integers(n_distinct, size=n)
    return EncodedRows(values[chosen], y[chosen], random.integers(1, 4, n).astype(float), np.arange(n))


GRID = Grid.of(np.ones(2), np.zeros(2), np.ones(2, bool))


def sample_of(some, size):
    keys = GRID.keys(some.X, some.y, 0), exact_keys(some.X, some.y, 0, GRID.varying)
    return RowSample.of(some, *keys, size)


def distinct(some):
    """Return each distinct row with its total weight, by its values."""
    total = {}
    for x, y, weight in zip(some.X.tolist(), some.y.tolist(), some.weight.tolist(), strict=True):
        total[*x, y] = total.get((*x, y), 0.0) + weight
    return total


@given(st.integers(1, 400), st.integers(1, 60), st.integers(0, 5), st.lists(st.integers(0, 400), max_size=5))
def test_a_sample_is_the_same_however_the_table_is_cut(n, size, seed, cuts):
    table = rows(n, seed, n_distinct=150)
    whole = sample_of(table, size).settled()
    bounds = [0, *sorted(cut for cut in cuts if cut < n), n]
    parts = [table.take(slice(a, b)) for a, b in zip(bounds, bounds[1:], strict=False) if a < b]
    merged = sample_of(parts[0], size)
    for part in parts[1:]:
        merged = merged.merged(sample_of(part, size))
    merged = merged.settled()
    assert_array_equal(merged.rows.X, whole.rows.X)
    assert_array_equal(merged.rows.weight, whole.rows.weight)
    assert_array_equal(merged.rows.number, whole.rows.number)
    assert merged.is_complete == whole.is_complete
    total = distinct(table)
    assert distinct(whole.rows).items() <= total.items()  # the weights of equal rows are summed
    assert whole.is_complete == (len(whole.rows) == len(total))


def test_large_keys_are_left_out_but_for_those_of_rare_classes():
    table = rows(20_000, seed=2)
    keys = GRID.keys(table.X, table.y, 0), exact_keys(table.X, table.y, 0, GRID.varying)
    whole = RowSample.of(table, *keys, 1000).settled().rows
    few = RowSample.of(table, *keys, 1000, np.uint64(0.08 * 2.0**64))
    assert len(few.parts[0]) < 2000
    assert_array_equal(few.settled().rows.X, whole.X)
    assert not few.settled().is_complete


def test_distinct_rows_are_counted():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 300, (60_000, 2)) / 7, columns=["a", "b"])
    n_distinct = len(frame.drop_duplicates())
    survey = survey_of(frame, np.arange(60_000) % 2, [0, 10_000, 35_000, 60_000])
    assert 40_000 < n_distinct < 50_000
    assert survey.n_distinct == pytest.approx(n_distinct, rel=0.1)
    assert survey_of(frame[:500], np.arange(500) % 2, [0, 500]).n_distinct == len(
        frame[:500].drop_duplicates()
    )


def test_a_sample_is_uniform_and_has_rows_of_rare_classes():
    table = rows(40_000, seed=1)
    taken = sample_of(table, 2000).settled().rows
    rare = int((table.y == 2).sum())
    assert rare > 300
    assert (taken.y == 2).sum() >= 64
    low = np.bincount(np.digitize(taken.number, [10_000, 20_000, 30_000]))
    assert np.abs(low - 500).max() < 4 * np.sqrt(375)  # a binomial count in each quarter of the table
    assert abs(taken.X[:, 0].mean()) < 4 / np.sqrt(2000)


def test_rows_that_exchange_values_of_columns_are_told_apart():
    swapped = EncodedRows(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2, np.intp), np.ones(2), np.arange(2))
    assert len(sample_of(swapped, 5).settled().rows) == 2


@given(
    st.lists(
        st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), min_size=1, max_size=20), min_size=1, max_size=5
    )
)
def test_moments_of_parts_are_those_of_the_whole(parts):
    columns = [np.array(part)[:, None] for part in parts]
    whole = np.concatenate(columns)
    merged = Moments.of(columns[0], np.ones(len(columns[0])))
    for column in columns[1:]:
        merged = merged.merged(Moments.of(column, np.ones(len(column))))
    present = whole[~np.isnan(whole)]
    assert merged.weight[0] == len(present)
    if len(present):
        assert_allclose(merged.mean[0], present.mean(), rtol=1e-9, atol=1e-9)
        assert_allclose(merged.spread[0], present.std(), rtol=1e-6, atol=1e-6)
        assert (merged.low[0], merged.high[0]) == (present.min(), present.max())


def test_steady_means_have_no_last_digits():
    values = np.random.default_rng(0).normal(3.0, 1e5, 100_000)
    square = float(np.mean(values**2))
    means = {
        steady(float(np.sum(values[order]) / 1e5), square) for order in (slice(None), slice(None, None, -1))
    }
    assert len(means) == 1
    assert_allclose(means.pop(), values.mean(), atol=1e-3)
    assert steady(4 / 3, 3.0) != 4 / 3
    assert steady(0.0, 0.0) == 0.0
    assert steady(1e308, np.inf) == 1e308


def survey_of(frame, y, cuts, **options):
    survey = None
    of_block = BlockSurvey("ISBOR", "auto", **options)
    for first, last in zip(cuts, cuts[1:], strict=False):
        weight = None if "w" not in frame else frame["w"].to_numpy()[first:last]
        part = of_block(
            Block(frame.drop(columns="w", errors="ignore")[first:last], y[first:last], weight, first, "")
        )
        survey = part if survey is None else survey.merged(part)
    return survey


FRAME = pd.DataFrame(
    {
        "number": [1.0, 2.5, np.nan, 4.0, 5.0, 7.0],
        "size": pd.Categorical(list("smlsml"), categories=list("sml"), ordered=True),
        "color": ["red", None, "blue", "red", "green", "red"],
        "empty then full": [np.nan, np.nan, np.nan, 1.0, 2.0, 3.0],
    }
)
Y = np.array([3, 1, 1, 2, 5, 5])


@pytest.mark.parametrize("cuts", [[0, 6], [0, 1, 6], [0, 3, 4, 6], range(7)])
def test_the_encoding_of_a_survey_is_that_of_the_table_in_memory(cuts):
    survey = survey_of(FRAME, Y, list(cuts))
    learned, matrix = learn_table("ISBOR", FRAME)
    encoding = survey.encoding("auto")
    assert encoding.names == learned.names
    assert_array_equal(encoding("ISBOR", FRAME), matrix)
    assert survey.classes.tolist() == [1, 2, 3, 5]
    assert survey.class_weight.tolist() == [2, 1, 1, 2]
    assert survey.n_rows == 6


def test_rows_of_weight_zero_do_not_count():
    frame = FRAME.assign(w=[1, 0, 0, 2, 0, 1])
    survey = survey_of(frame, Y, [0, 2, 6])
    kept = FRAME.iloc[[0, 3, 3, 5]].reset_index(drop=True)
    learned, _ = learn_table("ISBOR", kept)
    assert survey.encoding("auto").names == learned.names
    assert_allclose(survey.encoding("auto").fill, learned.fill)
    assert survey.class_weight.tolist() == [0, 2, 1, 1]
    assert survey.class_rows.tolist() == [0, 1, 1, 1]


def test_tables_that_change_are_refused():
    with pytest.raises(ValueError, match="The features change within the table: a, b at first, a, c later"):
        merge(pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"a": [1.0], "c": [2.0]}))
    with pytest.raises(ValueError, match="numbers in some blocks and categories, such as 'x'.*column 'a'"):
        merge(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": ["x"]}))
    with pytest.raises(ValueError, match=r"labels change within the table: \[True\] at first, \[1\] later"):
        merge(pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]}), [True], [1])
    with pytest.raises(ValueError, match="no value in column 'a': all 2 cells are missing"):
        merge(pd.DataFrame({"a": [np.nan]}), pd.DataFrame({"a": [np.nan]})).encoding("indicator")


def merge(one, other, y=(1,), later=(2,)) -> Survey:
    of_block = BlockSurvey("ISBOR", "indicator")
    return of_block(Block(one, list(y), None, 0, "")).merged(of_block(Block(other, list(later), None, 1, "")))
