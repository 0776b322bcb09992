"""The joint search in a stream: functions in other columns, and how many rounds members make."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.encoding import learn_table
from isbor.data.rows import canonical_rows
from isbor.data.warps import Warp, prepare
from isbor.model.basis import Functions
from isbor.search.adaptive.carried import Prepared, carried
from isbor.search.adaptive.online import Member, owing, rounds_of
from tests.problems import shop


def prepared(frame, *, warped=True):
    encoding, matrix = learn_table("M", frame)
    y = np.arange(len(frame)) % 2
    rows, scaling = canonical_rows(matrix, y, np.ones(len(y)), feature=encoding.feature)
    warpable = ~encoding.categorical & warped
    return Prepared(encoding, prepare(rows, scaling, warpable)[1])


def some_functions(how, frame, m=40, seed=0):
    """Functions of one to three columns, centred on rows."""
    rng = np.random.default_rng(seed)
    X = how.preparation(how.encoding("M", frame))
    metric = np.where(rng.random((m, X.shape[1])) < 0.2, np.exp(rng.normal(size=(m, X.shape[1]))), 0.0)
    metric[np.arange(m), rng.integers(0, X.shape[1], m)] = 0.5
    ramp = rng.random(m) < 0.5
    metric[ramp] *= rng.choice([-1.0, 1.0], (ramp.sum(), X.shape[1]))
    return Functions(X[rng.integers(0, len(X), m)], metric, ramp, np.zeros(m), np.arange(m), np.ones(m))


def values(functions, how, frame):
    return functions(how.preparation(how.encoding("M", frame)))


@pytest.fixture(scope="module")
def frame():
    return shop(400)[0]


def test_functions_of_plain_columns_keep_their_values(frame):
    whole = frame[frame["age"].notna()]  # the value of a missing cell changes, too
    first, later = whole[:200], whole.assign(income=whole["income"] ** 1.1)
    before, after = prepared(first, warped=False), prepared(later, warped=False)
    functions = some_functions(before, first)
    moved, kept = carried(functions, before, after)
    assert kept.all()
    assert_allclose(values(moved, after, first), values(functions, before, first), atol=1e-9)


def test_functions_of_warped_columns_nearly_keep_their_values(frame):
    before, after = prepared(frame[:250]), prepared(frame)
    functions = some_functions(before, frame[:250])
    moved, kept = carried(functions, before, after)
    assert kept.all()
    difference = values(moved, after, frame[:250]) - values(functions, before, frame[:250])
    assert np.sqrt(np.mean(difference**2)) < 0.05


def test_functions_of_warps_that_are_affine_in_the_numbers_keep_their_values(frame):
    whole = frame[frame["age"].notna()]
    before, after = prepared(whole), prepared(whole)
    preparation = after.preparation
    # Another scaling under the same warps, and warps of other units and places.
    scaling = replace(preparation.scaling, factor=2.0 * preparation.scaling.factor)
    warps = tuple(
        None if warp is None else Warp(2.0 * warp.knots, 1.5 * warp.warped + 0.3)
        for warp in preparation.warps
    )
    after = replace(after, preparation=replace(preparation, scaling=scaling, warps=warps))
    functions = some_functions(before, whole)
    moved, _ = carried(functions, before, after)
    assert_allclose(values(moved, after, whole), values(functions, before, whole), atol=1e-6)


def test_columns_come_and_go(frame):
    has = frame["colour"] != "blue"
    before, after = prepared(frame), prepared(frame[has])
    functions = some_functions(before, frame)
    moved, kept = carried(functions, before, after)
    names = [before.encoding.names[j] for j in before.preparation.source]
    of_blue = np.array([name == "colour=blue" for name in names])
    assert_array_equal(kept, (functions.metric[:, ~of_blue] != 0).any(axis=1))
    assert len(moved) == kept.sum()
    back, kept_back = carried(moved, after, before)
    assert kept_back.all()
    without = (functions.metric[:, of_blue] == 0).all(axis=1)
    assert_allclose(
        values(back.take(without[kept]), before, frame[has]),
        values(functions.take(without), before, frame[has]),
        atol=0.1,
    )


def test_rounds_depend_on_the_growth_alone():
    idle = [replace(Member.new(), owed=0.0)] * 3
    at_once = owing(idle, 1000.0, 100.0)
    slowly = idle
    for k in range(10):
        slowly = owing(slowly, 1000.0 + 10 * k, 10.0)
    assert_allclose([member.owed for member in slowly], [member.owed for member in at_once])
    assert_allclose(at_once[0].owed, np.log(1.1) / 0.025)
    assert owing(idle, 0.0, 1.0)[0].owed == 8.0


def test_members_that_owe_most_come_first_and_work_is_limited():
    members = [replace(Member.new(), owed=owed) for owed in (0.5, 3.2, 2.0, 0.9)]
    assert rounds_of(members, 1e3, 500) == [0, 3, 2, 0]
    assert rounds_of(members, 1e9, 500) == [0, 2, 0, 0]
    assert rounds_of(members, 1e6, 500) == [0, 3, 1, 0]
