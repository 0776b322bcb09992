"""What would have to change: the changed row is predicted so, and it is near."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from tests.problems import shop


@pytest.fixture(scope="module", params=[ISBOR(basis="mixed", n_members=1), SVOR(probability=False)], ids=str)
def fitted(request):
    frame, y = shop(200)
    return request.param.fit(frame, y), frame


@pytest.mark.parametrize("to", [1, -1, 2])
def test_the_changed_row_is_predicted_so(fitted, to):
    model, frame = fitted
    labels = model.predict(frame[:25])
    n_found = 0
    for number, found in enumerate(model.changes(frame[:25], to=to)):
        assert found.before == labels[number]
        if found.wanted is None:
            assert not 0 <= labels[number] + to <= 2
            continue
        if not found.is_found:
            continue
        n_found += 1
        changed = frame[number : number + 1].copy()
        for change in found.changes:
            before = changed[change.feature].iloc[0]
            assert change.before == before or (change.before is None and np.isnan(before))
            changed[change.feature] = change.after
            changed[change.feature] = changed[change.feature].astype(frame[change.feature].dtype)
            if change.feature in ("age", "income"):
                assert frame[change.feature].min() <= change.after <= frame[change.feature].max()
        assert model.predict(changed)[0] == found.after
        assert (found.after - labels[number] - to) * np.sign(to) >= 0
        assert 0 < found.distance < 3
    assert n_found > 3


def test_the_nearest_change_along_a_line_is_where_the_threshold_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.digitize(X @ [1.0, 0.3] + 0.3 * rng.normal(size=300), [-0.5, 0.5])
    model = OrderedProbit().fit(X, y)
    row = np.array([[0.0, 0.0]])
    (found,) = model.changes(row)
    assert [change.feature for change in found.changes] == ["x0"]
    assert_allclose(found.changes[0].after, model.thresholds_[1] / model.coef_[0], rtol=1e-6)
    (other,) = model.changes(row, allowed=[1])
    assert other.distance > found.distance


def test_two_features_if_one_is_not_enough_and_no_more():
    """The label is the number of marks."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 3)) < 0.5).astype(float)
    X[:, 2] = rng.integers(0, 5, 400)
    y = X[:, 0].astype(int) + X[:, 1].astype(int)
    model = ISBOR(basis="rbf").fit(X, y)
    row = np.array([[0.0, 0.0, 3.0]])
    (one,), (two,) = model.changes(row), model.changes(row, to=2)
    assert len(one.changes) == 1
    assert {change.feature: change.after for change in two.changes} == {"x0": 1.0, "x1": 1.0}
    (none,) = model.changes(row, to=2, max_features=1)
    assert not none.is_found and str(none) == "Row 0: no change from 0 to 2 was found."


def test_whole_numbers_stay_whole():
    rng = np.random.default_rng(0)
    X = rng.integers(1, 30, (300, 2)).astype(float)
    model = ISBOR(basis="rbf").fit(X, np.digitize(X[:, 0], [10, 20]))
    (found,) = model.changes([[2.0, 7.0]])
    assert found.changes[0].after == 10.0
    assert str(found) == "Row 0: 0 → 1 if x0: 2 → 10"


def test_it_says_when_there_is_none(fitted):
    model, frame = fitted
    highest = int(np.argmax(model.latent(frame)))
    lowest = int(np.argmin(model.latent(frame)))
    (at_end,) = model.changes(frame[highest : highest + 1])
    assert at_end.wanted is None and str(at_end) == "Row 0: there is no such class above or below 2."
    (not_found,) = model.changes(frame[lowest : lowest + 1], to=2, allowed=["flag", "one"])
    assert not_found.changes == () and not_found.distance == np.inf and not not_found.is_found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": 0}, "to is 0; a whole number other than 0"),
        ({"max_features": 4}, "max_features is 4; a whole number from 1 to 3"),
        ({"allowed": []}, r"allowed is \[\]"),
        ({"allowed": "age"}, "allowed is 'age'; a list"),
        ({"allowed": ["height"]}, "allowed is 'height'; the model has 6"),
    ],
)
def test_bad_options_are_refused(fitted, options, message):
    model, frame = fitted
    with pytest.raises(ValueError, match=message):
        model.changes(frame[:1], **options)
