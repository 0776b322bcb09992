"""What the basis families promise, and how one is chosen."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR
from isbor.data.order import on_grid
from isbor.metrics import log_loss, mean_absolute_error
from isbor.model.latent import Latent
from isbor.search import selection
from isbor.search.selection import FamilyTrial, Known, Selection
from isbor.search.validation import Validation
from tests.problems import shop

FAMILIES = {"rbf": {"basis": "rbf"}, "ard": {"metric": "ard"}, "mixed": {"basis": "mixed", "n_members": 2}}
MIXED = FAMILIES["mixed"]
families = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def two_of_six():
    """Six features of which the first two matter, in different ways."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    y = np.digitize(f + 0.3 * rng.normal(size=900), [-0.7, 0.0, 0.7])
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def fits(two_of_six):
    X, y, _, _ = two_of_six
    return {family: ISBOR(**parameters).fit(X, y) for family, parameters in FAMILIES.items()}


def test_irrelevant_features_are_found_out(fits, two_of_six):
    X, y = np.vstack(two_of_six[::2]), np.concatenate(two_of_six[1::2])
    spread = np.var([np.sin(2 * X[:, 0]), 0.5 * X[:, 1]], axis=1)
    truth = [*(spread / spread.sum()), 0, 0, 0, 0]
    for family in ("ard", "mixed"):
        relevance = ISBOR(**FAMILIES[family]).fit(X, y).feature_relevance_
        assert_allclose(relevance, truth, atol=0.05)
        assert relevance[2:].sum() < 0.01
    assert fits["rbf"].feature_relevance_[:2].sum() < fits["ard"].feature_relevance_[:2].sum()


def test_own_metrics_beat_one_width_where_features_are_irrelevant(fits, two_of_six):
    _, _, X, y = two_of_six
    loss = {family: log_loss(y, fit.predict_proba(X), labels=fit.classes_) for family, fit in fits.items()}
    assert loss["mixed"] < loss["rbf"] - 0.02
    assert loss["ard"] < loss["rbf"] - 0.02


def test_relevance_is_the_effect_of_taking_a_feature_from_another_row(fits, two_of_six):
    X = two_of_six[0]
    for model in fits.values():
        effect = np.zeros(6)
        for j in range(6):
            for shift in range(1, len(X), 7):
                other = X.copy()
                other[:, j] = np.roll(X[:, j], shift)
                effect[j] += np.mean((model.latent(other) - model.latent(X)) ** 2)
        assert_allclose(model.feature_relevance_, effect / effect.sum(), atol=0.01)


def test_the_default_chooses_and_says_why(two_of_six, fits):
    X, y, X_test, y_test = two_of_six
    model = ISBOR().fit(X, y)
    assert model.basis_ == model.selection_.basis
    tried = [trial.families for trial in model.selection_.trials]
    assert tried[:4] == [("rbf",), ("mixed",), ("rbf", "mixed"), ("gp",)]  # the simplest first
    assert tried[-1] == ("rbf", "mixed", "gp")
    text = str(model.selection_)
    assert model.basis_ in text
    assert "held-out" in text
    loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    single = [log_loss(y_test, fit.predict_proba(X_test), labels=fit.classes_) for fit in fits.values()]
    assert loss < np.mean(single)


def check_one_sum(model, X):
    """The attributes of a model, an average or not, are those of one sum of functions."""
    assert len(model.dual_coef_) == len(model.alpha_) == len(model.relevance_vectors_) == model.n_relevance_
    score = model.latent(on_grid(X))  # the training rows
    assert_allclose([score.mean(), score.std()], [0.0, 1.0], atol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_an_average_is_a_model_like_any_other(two_of_six, monkeypatch):
    """Whatever is selected; here it is all families, on equal terms."""
    X, y = two_of_six[0][:120], two_of_six[1][:120]
    choose(monkeypatch, "rbf", "ard", "mixed")
    model = ISBOR().fit(X, y)
    assert model.basis_ == "rbf + ard + mixed"
    assert model.gamma_ is None
    check_one_sum(model, X)
    # "ard" starts from another model if it is alone, and "mixed" is an average itself.
    alone = ISBOR(basis="rbf").fit(X, y)
    assert_array_equal(model.relevance_[: alone.n_relevance_], alone.relevance_)


def choose(monkeypatch, *families):
    """Let the comparison of families select these."""
    chosen = Selection(families, (), "set by a test.")
    monkeypatch.setattr("isbor.estimators.isbor.select_families", lambda *_: (chosen, Known()))


@pytest.mark.parametrize("families", [("gp",), ("mixed", "gp")], ids=" + ".join)
def test_a_gaussian_process_is_a_model_like_any_other(two_of_six, monkeypatch, families):
    X, y = two_of_six[0][:100], two_of_six[1][:100]
    choose(monkeypatch, *families)
    model = ISBOR().fit(X, y)
    check_one_sum(model, X)
    assert model.n_relevance_ >= 200
    assert model.feature_relevance_[:2].sum() > 0.5
    order = np.random.default_rng(0).permutation(100)
    shuffled = ISBOR(n_jobs=2).fit(X[order], y[order])
    assert_array_equal(shuffled.predict_proba(X), ISBOR(n_jobs=1).fit(X, y).predict_proba(X))
    weight = np.random.default_rng(1).integers(0, 3, 100)
    weighted = ISBOR().fit(X, y, sample_weight=weight)
    repeated = ISBOR().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


def made_up_scores(seed):
    """Return a function that makes up validations by their mean gain and its noise, on common rows."""
    rng = np.random.default_rng(seed)
    common = rng.normal(-1.0, 0.3, 300)

    def scores(gain, noise):
        latent = Latent(np.zeros(300), np.zeros(300), np.ones(300))
        log_p = common + gain + noise * rng.normal(size=300)
        return [Validation(latent, np.zeros(1), np.zeros(300, dtype=int), np.ones(300), 5, log_p)]

    return scores


def test_a_gaussian_process_has_to_be_clearly_better():
    """One standard error better than all sparse candidates, in a comparison of made-up scores."""
    scores = made_up_scores(0)
    found = {("rbf",): scores(-0.1, 0.01), ("mixed",): scores(0.0, 0.01), ("gp",): scores(0.0, 2.0)}
    assert selection._select(found, folded=True).families == ("mixed",)
    found["gp",] = scores(0.1, 0.1)
    assert selection._select(found, folded=True).families == ("gp",)


def test_families_race_in_cross_validation():
    """What further folds would hardly select is dropped after the first."""
    scores = made_up_scores(1)
    both = "rbf", "mixed"
    found = {("rbf",): scores(-0.1, 0.1), ("mixed",): scores(0.0, 0.1), both: scores(0.01, 0.1)}
    assert selection._contenders(found) == [("mixed",), both]
    found["gp",] = scores(-0.02, 0.1)  # not far behind, but it would have to be clearly ahead
    assert selection._contenders(found) == [("mixed",), both]
    found["gp",] = scores(0.0, 0.3)
    assert selection._contenders(found) == [("mixed",), both, ("gp",)]
    found["gp",] = scores(0.2, 0.1)
    assert selection._contenders(found) == [("gp",)]


def test_what_was_dropped_is_not_selected():
    """Even if its one fold looks better than all folds of the others."""
    scores = made_up_scores(2)
    found = {("rbf",): scores(0.3, 0.1), ("mixed",): scores(0.0, 0.1) + scores(0.1, 0.1)}
    chosen = selection._select(found, folded=True)
    assert chosen.families == ("mixed",)
    assert [trial.n_fits for trial in chosen.trials] == [1, 2]
    assert chosen.reason == "best log score on held-out rows (2 folds)."


def test_what_is_not_compared():
    """Averages where families would have to share a limit; "ard" where one column's scale is the width."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=120), [-0.5, 0.5])
    limited = ISBOR(max_vectors=3).fit(X, y)
    assert all(len(trial.families) == 1 for trial in limited.selection_.trials)
    assert limited.n_relevance_ <= 3
    assert not any("gp" in trial.families for trial in limited.selection_.trials)  # a function for each row
    tried = [trial.families for trial in ISBOR().fit(X[:, :1], y).selection_.trials]
    assert ("ard",) not in tried
    assert ("rbf",) in tried


def test_families_are_not_compared_without_labels_to_hold_out():
    X = np.random.default_rng(0).normal(size=(50, 2))
    for y in (np.arange(50) % 10, np.r_[np.zeros(45), 1:6].astype(int)):
        model = ISBOR().fit(X, y)
        assert model.basis_ == "rbf"
        assert "fewer than two classes have 6 rows" in repr(model.selection_)


def test_a_constant_score_has_the_unit_of_the_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    model = ISBOR(basis="mixed", size_prior=50.0).fit(X, y)
    assert model.n_relevance_ == 0
    assert model.sigma_ == 1.0
    assert_allclose(model.latent(X), 0.0, atol=1e-12)
    assert np.all(np.abs(model.thresholds_) < 2)
    assert_array_equal(model.feature_relevance_, 0.0)


def test_families_that_were_given_up_are_told_apart():
    held = FamilyTrial(("rbf",), -0.7, 0.0, 0.0, 3.0, n_fits=3)
    given_up = FamilyTrial(("mixed",), -0.6, 0.2, 0.01, 9.0, n_fits=1)
    text = repr(Selection(("rbf",), (held, given_up), "the best."))
    assert re.search(r"^mixed +-0.6000 .* 1$", text, flags=re.MULTILINE)
    assert "folds shared" in text
    assert "folds" not in repr(Selection(("rbf",), (held,), "the best."))


# --- Categories --------------------------------------------------------------------------------------------


def draw_groups(seed, n, n_groups):
    """Return a table whose groups mean nothing, its labels and the numbers of the groups."""
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=n), rng.integers(0, n_groups, n)
    table = pd.DataFrame({"x": x, "group": [f"g{i}" for i in group]})
    return table, np.digitize(x + 0.7 * rng.normal(size=n), [-0.5, 0.5]), group


@families
def test_groups_that_mean_nothing_do_little_harm(family):
    """Neither those that training knows nor, above all, those that it does not."""
    table, y, group = draw_groups(2, 1600, 150)
    train = np.arange(1600) < 300
    model = ISBOR(**FAMILIES[family]).fit(table[train], y[train])
    without = ISBOR(**FAMILIES[family]).fit(table.loc[train, ["x"]], y[train])
    seen = np.isin(group, group[train])
    for rows in (~train & seen, ~train & ~seen):
        loss = log_loss(y[rows], model.predict_proba(table[rows]))
        assert loss < log_loss(y[rows], without.predict_proba(table.loc[rows, ["x"]])) + 0.05


def test_families_are_compared_on_groups_that_their_fits_did_not_see():
    """Each held-out row has a group of its own: what was learned about the others' is of no use there."""
    n = 150
    x = np.random.default_rng(0).normal(size=n)
    y = (x > 0).astype(int)
    table = pd.DataFrame({"x": x, "row": pd.Categorical(range(n))})
    with pytest.warns(
        UserWarning, match="150 different categories, such as 0, in column 'row', for 150 rows"
    ):
        model = ISBOR().fit(table, y)
    scores = {trial.families: trial.log_score for trial in model.selection_.trials}
    later = table.assign(row=pd.Categorical(range(n, 2 * n)))
    assert_allclose(-log_loss(y, model.predict_proba(later)), scores[model.selection_.families], atol=0.2)
    assert model.column_names_[0] == "x"
    assert model.column_names_[-1] == "row unseen"


@pytest.mark.parametrize(
    ("parameters", "family"),
    [
        ({"basis": "rbf"}, "rbf"),
        ({"gamma": 0.2}, "rbf"),
        ({"metric": "ard"}, "ard"),
        ({"basis": "rbf", "metric": "ard"}, "ard"),
        ({"basis": "mixed"}, "mixed"),
        ({"solver": "sequential"}, "rbf"),
    ],
)
def test_what_is_asked_for_is_not_compared(two_of_six, parameters, family):
    model = ISBOR(**parameters).fit(two_of_six[0][:60], two_of_six[1][:60])
    assert model.basis_ == family
    assert model.selection_.trials == ()


@families
def test_max_vectors_is_a_limit(two_of_six, fits, family):
    X, y, X_test, y_test = two_of_six
    limit = fits[family].n_relevance_ // 2
    small = ISBOR(**FAMILIES[family], max_vectors=limit).fit(X, y)
    assert 0 < small.n_relevance_ <= limit
    guess = np.full(len(y_test), np.median(y))
    assert mean_absolute_error(y_test, small.predict(X_test)) < 0.8 * mean_absolute_error(y_test, guess)


def test_a_mixed_model_at_its_limit_goes_on_exchanging_functions(two_of_six):
    X, y = two_of_six[0][:150], two_of_six[1][:150]
    model = ISBOR(basis="mixed", n_members=1, max_vectors=3).fit(X, y)
    kinds = [step.kind for step in model.trace_]
    first = next(k for k, step in enumerate(model.trace_) if step.kind == "ascent" and step.n_active == 3)
    later = model.trace_[first:]
    assert "add" in kinds[first:]
    assert all(step.n_active <= 3 for step in later if step.kind == "ascent")
    assert max(step.n_active for step in later) > 3


def test_the_objective_of_a_member_never_falls(fits):
    """Within a run, on the same rows and at the same price."""
    before = None
    for step in fits["mixed"].trace_:
        if step.kind not in ("mode", "ascent"):
            continue
        if before is not None and (before.run, before.n_rows, before.size_prior) == (
            step.run,
            step.n_rows,
            step.size_prior,
        ):
            assert step.objective >= before.objective - 1e-6 * abs(before.objective)
        before = step


def test_the_best_model_after_its_noise_was_fitted_is_kept(two_of_six):
    # With constant thresholds: others are fitted once more at the end, whatever the objective.
    model = ISBOR(basis="mixed", n_members=1, thresholds="constant").fit(*two_of_six[:2])
    fitted = [step for step in model.trace_ if step.kind == "noise" and step.n_rows == len(two_of_six[0])]
    assert len(fitted) > 1
    best = max(fitted, key=lambda step: step.objective)
    assert_allclose(model.log_evidence_, best.log_evidence)
    assert model.n_relevance_ == best.n_active


def test_a_committee_has_eight_members_unless_it_has_to_share(two_of_six):
    X, y = two_of_six[0][:200], two_of_six[1][:200]
    model = ISBOR(basis="mixed").fit(X, y)
    assert len(model._model.models) == len({step.run for step in model.trace_}) == 8
    assert len(ISBOR(basis="mixed", max_vectors=20).fit(X, y)._model.models) == 2


@families
def test_attributes_describe_one_sum(fits, two_of_six, family):
    check_one_sum(fits[family], two_of_six[0])


def test_outliers_do_not_hide_a_feature(two_of_six, fits):
    """One wild value takes the signal out of a standardised column, not out of its warp."""
    X, y, X_test, y_test = two_of_six
    wild = X.copy()
    wild[0, 0] = 1e6
    models = ISBOR(**MIXED).fit(wild, y), fits["mixed"]
    loss, best = (log_loss(y_test, model.predict_proba(X_test), labels=model.classes_) for model in models)
    assert loss < best + 0.1


# --- Tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["rbf", "mixed"])
def test_categories_and_missing_cells(family):
    X, y = shop(500, 0)
    X_test, y_test = shop(1000, 1)
    model = ISBOR(**FAMILIES[family]).fit(X, y)
    relevance = dict(zip(model.feature_names_in_, model.feature_relevance_, strict=True))
    assert min(relevance["colour"], relevance["age"]) > 0.1
    assert max(relevance["one"], relevance["flag"]) < 0.05
    assert mean_absolute_error(y_test, model.predict(X_test)) < 0.25
    unseen = X_test.iloc[:5].assign(colour="violet")
    assert_allclose(model.predict_proba(unseen).sum(axis=1), 1.0)
