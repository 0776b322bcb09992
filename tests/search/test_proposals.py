"""What is proposed: which features, which scales, which rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.model.basis import adaptive_cost, column_costs
from isbor.search.adaptive.entries import Entries
from isbor.search.adaptive.gains import Directions
from isbor.search.adaptive.proposals import Proposals
from tests.problems import small_rows

COUNT = 20_000
# Feature 2 has two columns, feature 4 has two 0/1 columns, feature 5 is constant.
FEATURE = np.array([0, 1, 2, 2, 3, 4, 4, 5])


@pytest.fixture(scope="module")
def rows():
    rows = small_rows(n=300, d=8)
    X = rows.X.copy()
    X[:, 5], X[:, 6], X[:, 7] = X[:, 5] > 0, X[:, 6] > 1, 0.0
    return replace(rows, X=X)


@pytest.fixture
def proposals(rows):
    return Proposals.of(np.random.default_rng(0), rows, FEATURE)


def close(found, expected, count=COUNT):
    """Whether a frequency is as expected, to four standard errors."""
    return np.all(np.abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / count) + 1e-12)


def test_fresh_functions(rows, proposals):
    found = proposals.fresh(COUNT).functions(rows.X)
    used = found.metric != 0
    sizes = np.bincount(used.sum(axis=1), minlength=9) / COUNT
    assert close(sizes, np.array([0, 0.35, 0.3, 0.2, 0, 0.15, 0, 0, 0]))  # of 12 features, there are five
    assert close(found.ramp.mean(), 0.3)
    # Each feature is used equally often, by one of its columns that vary.
    share = (0.35 + 0.6 + 0.6 + 0.75) / 5
    assert close(used.mean(axis=0), share * np.array([1, 1, 0.5, 0.5, 1, 0.5, 0.5, 0]))
    assert not (used[:, 2] & used[:, 3]).any()
    assert_array_equal(found.centres, rows.X[found.origin])
    assert len(np.unique(found.origin)) == 300
    assert_array_equal(found.cost, adaptive_cost(found.metric, column_costs(rows)))
    one = used.sum(axis=1) == 1
    octaves = np.log2(found.metric[one & ~found.ramp].max(axis=1))
    assert_allclose([octaves.mean(), octaves.std()], [0, np.sqrt(64 / 12 + 0.49)], atol=0.1)
    length = np.log2(np.linalg.norm(found.metric[found.ramp], axis=1))
    assert_allclose([length.min(), length.max()], [-5, 3], atol=0.02)
    assert_allclose(length.mean(), -1, atol=0.15)


def test_children_are_near_their_parents(rows, proposals):
    parents = proposals.fresh(40)
    found = proposals.children(parents, COUNT)
    size = np.diff(found.first)
    expected = np.zeros(9)
    n_varying = np.array([1, 1, 2, 2, 1, 2, 2, 0])
    for parent in parents.functions(rows.X).metric != 0:
        k = parent.sum()
        # The drawn column is one of the parent's with this probability.
        again = np.sum(parent / np.maximum(n_varying, 1)) / 5
        dropped = 0.2 * (k > 1)
        added = 0.3 * (1 - again)
        expected[[k - 1, k, k + 1]] += np.array([dropped, 1 - dropped - added, added]) / 40
    assert close(np.bincount(size, minlength=9) / COUNT, expected)
    assert set(found.origin) <= set(parents.origin)
    assert np.all(found.metric[np.repeat(~found.ramp, size)] > 0)

    # All children of one bump of one feature.
    bump = replace(
        parents.functions(rows.X).take(slice(1)),
        metric=np.eye(8)[:1],
        ramp=np.zeros(1, dtype=bool),
        offset=[0.0],
    )
    found = proposals.children(Entries.of(bump), COUNT)
    own = found.column == 0
    moved = (found.centre[own] - bump.centres[0, 0]) * np.sqrt(2)
    octaves = np.log2(found.metric[own])
    reach = np.sqrt(np.mean(np.square([0.15, 0.5, 1.0])))
    assert own.sum() == COUNT
    assert_allclose([moved.mean(), moved.std()], [0, 0.7 * reach], atol=0.02)
    assert_allclose([octaves.mean(), octaves.std()], [0, 1.5 * reach], atol=0.04)


def test_siblings_have_the_features_of_their_parents_on_other_rows(rows, proposals):
    parents = proposals.fresh(5)
    siblings = proposals.siblings(parents, 400).functions(rows.X)
    parents = parents.functions(rows.X)
    patterns = {tuple(used) for used in parents.metric != 0}
    assert {tuple(used) for used in siblings.metric != 0} == patterns
    assert_array_equal(siblings.centres, rows.X[siblings.origin])
    assert len(np.unique(siblings.origin)) > 150
    # Slopes of ramps keep their signs.
    for ramp in (True, False):
        signs = {tuple(np.sign(metric)) for metric in parents.metric[parents.ramp == ramp]}
        assert {tuple(np.sign(metric)) for metric in siblings.metric[siblings.ramp == ramp]} <= signs


def test_there_are_no_children_and_siblings_without_parents(proposals):
    nobody = proposals.fresh(0)
    assert proposals.children(nobody, 10).n_functions == proposals.siblings(nobody, 10).n_functions == 0


def test_oblique_ramps_use_strong_features_and_all_their_categories(rows, proposals):
    strong = np.array([9.0, 0, 0, 0, 0, 9.0, 0, 0])
    found = proposals.oblique(4000, Directions(strong, np.eye(8))).functions(rows.X)
    assert found.ramp.all()
    used = found.metric != 0
    assert used[:, [0, 5]].mean() > 0.95  # strong features are nearly always drawn
    assert_array_equal(used[:, [1, 2, 3, 4, 6, 7]], False)  # along the others, a ramp gains nothing
    both = used[:, 0] & used[:, 5]
    assert_allclose(found.metric[both, 0], found.metric[both, 5])
    gentle = proposals.oblique(4000, Directions(np.ones(8), np.eye(8))).functions(rows.X).metric != 0
    # 300 rows allow six features; a category that is used has both its columns.
    assert_array_equal(gentle[:, 5], gentle[:, 6])
    assert not (gentle[:, 2] & gentle[:, 3]).any()
    n_features = gentle.sum(axis=1) - gentle[:, 5]
    assert close(np.mean(n_features == 3), 0.25, 4000)
    assert close(np.mean(n_features == 5), 0.75, 4000)


def test_no_column_varies(rows):
    flat = replace(rows, X=np.zeros_like(rows.X))
    proposals = Proposals.of(np.random.default_rng(0), flat, FEATURE)
    fresh = proposals.fresh(10)
    assert_array_equal(fresh.first, 0)
    assert_array_equal(proposals.children(fresh, 10).first, 0)
    assert_array_equal(proposals.oblique(10, Directions(np.zeros(8), np.zeros((8, 8)))).first, 0)


def test_entries_are_the_functions(rows, proposals):
    functions = proposals.fresh(50).functions(rows.X)
    entries = Entries.of(functions)
    chosen = np.array([4, 0, 49, 4])
    for found, expected in (
        (entries.functions(rows.X), functions),
        (entries.take(chosen).functions(rows.X), functions.take(chosen)),
        (
            entries.followed_by(entries.take(chosen)).functions(rows.X),
            functions.followed_by(functions.take(chosen)),
        ),
    ):
        for name in ("centres", "metric", "ramp", "origin", "cost"):
            assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
