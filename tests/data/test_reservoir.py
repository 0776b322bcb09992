"""A bounded sample of a stream: which rows are kept, and what their weights say of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.order import exact_keys
from isbor.data.reservoir import Reservoir

N_CLASSES = 3


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, N_CLASSES, n)


def stream(X, y, sizes, *, weight=None, told=None, half_life=None, capacity=100, seed=1, start=None):
    """Return the reservoir after batches of these sizes, again and again."""
    kept = Reservoir.empty(capacity, seed, X.shape[1], N_CLASSES) if start is None else start
    weight = np.ones(len(y)) if weight is None else weight
    told = np.ones(len(y)) if told is None else told
    begin, k = 0, 0
    while begin < len(y):
        part = slice(begin, begin + sizes[k % len(sizes)])
        told_before = dict(zip(kept.number.tolist(), kept.information.tolist(), strict=True))
        kept = kept.with_rows(X[part], X[part], kept.cells, y[part], weight[part], half_life)
        offset = kept.n_rows - len(y[part]) - begin
        of_rows = [
            told_before.get(k, told[min(max(k - offset, 0), len(y) - 1)]) for k in kept.number.tolist()
        ]
        kept = kept.thinned(np.array(of_rows))
        begin, k = part.stop, k + 1
    return kept


def content(kept):
    order = np.lexsort((*kept.cells.T, kept.codes))
    return kept.cells[order], kept.codes[order], kept.weight[order]


def test_the_smallest_hashes_of_all_rows_are_kept():
    X, y = rows(1000)
    kept = stream(X, y, [37], capacity=100)
    hashes = exact_keys(X, y, 1, np.full(2, True))
    # A small hash is a large e = -ln u: the first arrivals have the largest ones.
    first = set(np.argsort(hashes)[-100:].tolist())
    assert first <= set(kept.number.tolist())
    assert_array_equal(kept.cells, X[kept.number])
    assert_array_equal(kept.codes, y[kept.number])
    for k in range(N_CLASSES):  # and 8 of each class, which are mostly among those
        assert np.sum(kept.codes == k) >= 8
    assert len(kept) <= 100 + 3 * 8


@pytest.mark.parametrize("sizes", [[1000], [1], [500, 3, 90]])
def test_batches_and_their_order_do_not_matter(sizes):
    X, y = rows(600)
    order = np.random.default_rng(5).permutation(600)
    expected = content(stream(X, y, [100]))
    for found in (stream(X, y, sizes), stream(X[order], y[order], sizes)):
        for one, other in zip(content(found), expected, strict=True):
            assert_allclose(one, other, rtol=1e-12)
        assert found.n_rows == 600


def test_each_row_is_kept_with_the_same_probability():
    X, y = rows(300)
    counts = np.zeros(300)
    n_seeds = 400
    for seed in range(n_seeds):
        kept = stream(X, y, [150], capacity=60, seed=seed)
        counts[kept.number] += 1
    p = counts.mean() / n_seeds
    deviation = (counts / n_seeds - p) / np.sqrt(p * (1 - p) / n_seeds)
    assert 0.19 < p < 0.22
    assert np.abs(deviation).max() < 4.0
    assert_allclose(np.mean(deviation**2), 1.0, atol=0.25)


def test_equal_rows_are_one_row_of_their_weight():
    X, y = rows(50)
    times = np.random.default_rng(2).integers(1, 4, 50)
    repeated = np.repeat(np.arange(50), times)
    repeated = np.random.default_rng(3).permutation(repeated)
    one = stream(X[repeated], y[repeated], [7], capacity=30)
    other = stream(X, y, [50], weight=times.astype(float), capacity=30)
    for found, expected in zip(content(one), content(other), strict=True):
        assert_allclose(found, expected)
    assert_allclose(one.of_class, other.of_class)
    assert_allclose(one.sample_weights().sum(), one.weight.sum())


def test_rows_of_weight_zero_and_missing_cells():
    X, y = rows(40)
    X[::3, 1] = np.nan
    weight = np.tile([1.0, 0.0], 20)
    kept = stream(np.concatenate([X, X]), np.concatenate([y, y]), [40], weight=np.tile(weight, 2))
    assert_array_equal(kept.number, np.arange(0, 40, 2))
    assert_array_equal(kept.weight, 2.0)


def test_weights_estimate_sums_over_all_rows_without_bias():
    X, y = rows(2000)
    told = np.where(np.abs(X[:, 0]) < 0.3, 0.9, 0.05)
    estimates = []
    for seed in range(60):
        kept = stream(X, y, [400], told=told, capacity=300, seed=seed)
        weight = kept.sample_weights()
        weight /= weight.sum()
        estimates.append([weight @ (kept.cells[:, 0] > 1.0), weight @ (kept.information > 0.5)])
    truth = [np.mean(X[:, 0] > 1.0), np.mean(told > 0.5)]
    error = np.mean(estimates, axis=0) - truth
    assert np.all(np.abs(error) < 3.0 * np.std(estimates, axis=0) / np.sqrt(60) + 1e-3)


def test_rows_that_tell_something_are_kept_and_count_fully():
    X, y = rows(5000)
    told = np.where(np.abs(X[:, 0]) < 0.02, 0.9, 0.0)
    kept = stream(X, y, [500], told=told, capacity=500)
    assert np.sum(kept.information > 0.5) > 0.99 * np.sum(told > 0.5)
    assert_allclose(kept.sample_weights().sum(), 5000, rtol=0.1)
    # Rows of equal rates count for themselves.
    alike = stream(X, y, [500], told=np.full(5000, 0.4), capacity=500)
    assert_allclose(np.median(alike.sample_weights()), 1.0, rtol=0.1)


def test_weights_halve_in_a_half_life():
    X, y = rows(60)
    kept = stream(X, y, [1, 4], half_life=20.0, capacity=1000)
    age = 60 - 1 - kept.number
    assert_allclose(kept.weight, 0.5 ** (age / 20.0), rtol=1e-9)
    assert_allclose(kept.total_weight, np.sum(0.5 ** (np.arange(60) / 20.0)))
    assert kept.seen == 60


def test_later_rows_are_kept_with_a_half_life():
    X, y = rows(5000)
    kept = stream(X, y, [100], half_life=150.0, capacity=200)
    assert np.mean(kept.number > 4500) > 0.8
    assert len(kept) < 280
    shares = kept.sample_weights()
    shares /= shares.sum()
    assert_allclose(shares @ (kept.number >= 4850), 0.5, atol=0.12)


def test_a_half_life_may_begin_and_end():
    X, y = rows(900)
    kept = stream(X[:300], y[:300], [100], capacity=100)
    aged = stream(X[300:600], y[300:600], [100], capacity=100, half_life=100.0, start=kept)
    assert 0 < np.sum(aged.number < 300) < np.sum(kept.number < 300)
    later = stream(X[600:], y[600:], [100], capacity=100, start=aged)
    assert np.isfinite(later.sample_weights()).all()
    assert 0 < np.sum(later.number < 600)


def test_a_rare_class_is_kept():
    X, y = rows(4000)
    y = np.where(np.arange(4000) % 200 == 7, 2, np.minimum(y, 1))
    kept = stream(X, y, [250], capacity=200)
    rare = kept.codes == 2
    assert rare.sum() >= 16  # 1 of them would be expected among 200
    weight = kept.sample_weights()
    assert_allclose(weight[rare].sum() / weight.sum(), 0.005, rtol=1.0)
