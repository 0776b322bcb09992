from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.inference.evidence import gram_model, make_moves, weight_posterior
from isbor.inference.expansion import expand, expand_partly, streamed
from isbor.inference.mode import starting_thresholds
from isbor.inference.sparse import fit_weights
from isbor.model.basis import RowDictionary
from isbor.search import width
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.gram import solve_gram
from isbor.search.solvers.passes import PassSettings, successful_moves
from isbor.search.solvers.sequential import solve_sequential
from isbor.search.starts import initial_model, start_from
from isbor.search.width import choose_width
from tests.inference.test_evidence import digits_lost
from tests.prediction.test_ensemble import SETTINGS
from tests.problems import small_rows

FREE = PassSettings(0.0, np.inf, 0.01)


@pytest.fixture(scope="module")
def start():
    rows = small_rows(n=150)
    dictionary = RowDictionary(rows, 0.3)
    with Workers(1) as workers:
        model = initial_model(rows, dictionary, workers)
        basis = dictionary.basis(model.functions.origin)
        expansion = expand(rows, streamed(rows, basis), model.mode.weights, model.mode.thresholds, workers)
    return model, expansion


def test_moves_are_taken_back_by_halves_while_the_objective_falls(start):
    model, expansion = start
    tried = []

    def rises_at_the_third_try(after):
        tried.append(len(after.active))
        rise = 1.0 if len(tried) == 3 else -1.0
        return replace(model, log_evidence=model.log_evidence + rise)

    moves, moved = successful_moves(
        expansion, np.ones(len(expansion.weights)), model, FREE, rises_at_the_third_try
    )
    assert len(tried) == 3
    assert moved.log_evidence == model.log_evidence + 1.0
    every_move, _ = successful_moves(
        expansion, np.ones(len(expansion.weights)), model, FREE, lambda after: model
    )
    assert len(moves) == len(every_move) // 2 // 2


@pytest.mark.parametrize("reason", ["falls", "unresolved"])
def test_a_pass_that_never_pays_changes_nothing(start, reason):
    model, expansion = start

    def model_after(after):
        if reason == "unresolved":
            raise UnresolvedError("no such mode")
        return replace(model, log_evidence=model.log_evidence - 1.0)

    moves, moved = successful_moves(expansion, np.ones(len(expansion.weights)), model, FREE, model_after)
    assert moves == []
    assert moved is model


def test_moves_end_at_a_fresh_factorisation_whatever_digits_were_lost(start):
    model, expansion = start
    quadratic = gram_model(expansion)
    sound = weight_posterior(quadratic, np.arange(len(model)), model.mode.alpha)
    drifted = replace(sound, covariance=sound.covariance * (1 + 1e-4), mean=sound.mean * (1 + 1e-4))
    assert digits_lost(quadratic, drifted) > 1e-5
    after, moves = make_moves(quadratic, drifted, np.zeros(len(expansion.weights)), 0.01, 5, 10)
    assert len(moves) == 5
    assert digits_lost(quadratic, after) < 1e-8


def test_inner_products_that_come_later_are_the_same(monkeypatch):
    """Moves for which rows of the Gram matrix are computed on demand are those with the whole matrix."""
    rows = small_rows(n=300)
    basis = RowDictionary(rows, 1.0).basis(np.arange(120))
    with Workers(1) as workers:
        model = start_from(rows, basis.take(slice(5)), workers, reach=3.0)
        weights = np.concatenate([model.mode.weights, np.zeros(115)])
        point = rows, basis, 5, weights, model.mode.thresholds, workers
        partly = expand_partly(*point)
        monkeypatch.setattr("isbor.inference.expansion._MAX_CACHED_VALUES", 0)
        whole = expand_partly(*point)
    assert partly.later is not None
    assert whole.later is None

    def moves_of(expansion):
        quadratic = gram_model(expansion)
        start = weight_posterior(quadratic, np.arange(5), model.mode.alpha)
        return make_moves(quadratic, start, np.zeros(120), 0.01, 200, np.inf)

    (after, moves), (expected, whole_moves) = moves_of(partly), moves_of(whole)
    assert sum(move.kind == "add" for move in moves) > 5
    assert [(move.kind, move.candidate) for move in moves] == [(m.kind, m.candidate) for m in whole_moves]
    assert_allclose(after.sparsity, expected.sparsity, rtol=1e-8, atol=1e-10)
    assert_allclose(after.quality, expected.quality, rtol=1e-8, atol=1e-8)


def test_width_is_chosen_by_evidence_less_the_size_prior():
    rows = small_rows(n=150)
    with Workers(1) as workers:
        free, trials = choose_width(rows, 2, SolverSettings(size_prior=0.0), workers)
        dear, dear_trials = choose_width(rows, 2, SolverSettings(size_prior=20.0), workers)
    assert free.objective == max(trial.log_evidence for trial in trials)
    assert dear.objective == max(trial.log_evidence - 20 * trial.n_active for trial in dear_trials)
    assert len(dear.model.functions.origin) < len(free.model.functions.origin)


def test_the_first_rows_hold_every_level():
    y = np.arange(5000) % 2000  # more levels than a quarter of the usual sample
    rows, _ = canonical_rows(np.arange(5000.0)[:, None], y, np.ones(5000))
    settings = replace(SETTINGS, n_candidates=None).for_solver(rows)
    assert settings.first_rows > SolverSettings().first_rows
    assert len(np.unique(rows.head(settings.first_rows).y)) == 2000
    assert settings.n_candidates == 5000


def test_more_classes_than_a_sample_would_hold(monkeypatch):
    monkeypatch.setattr(width, "_COARSE_ROWS", 20)
    monkeypatch.setattr(width, "_FINE_ROWS", 30)
    X = np.random.default_rng(0).normal(size=(300, 1))
    y = np.argsort(np.argsort(X[:, 0])) // 6
    rows, _ = canonical_rows(X, y, np.ones(300))
    settings = SolverSettings(first_rows=200, max_iter=20)
    with Workers(1) as workers:
        chosen, _ = choose_width(rows, 1, settings, workers)
        dictionary = RowDictionary(rows, chosen.gamma)
        model, _ = solve_gram(rows, dictionary, chosen.model, settings, workers, Recorder("fit", rows.source))
    assert len(model.mode.thresholds) == 49


@pytest.mark.parametrize("solve", [solve_gram, solve_sequential])
def test_the_number_of_vectors_is_limited(solve):
    rows = small_rows(n=120)
    dictionary = RowDictionary(rows, 0.3)
    with Workers(1) as workers:
        found = []
        for settings in (SolverSettings(), SolverSettings(max_vectors=3)):
            recorder = Recorder("fit", rows.source)
            found.append(solve(rows, dictionary, None, settings, workers, recorder)[0])
    free, limited = found
    assert len(free) > 3
    assert 1 <= len(limited) <= 3
    none = np.zeros(0)
    thresholds = starting_thresholds(rows.y, rows.weight)
    with Workers(1) as workers:
        nothing = fit_weights(rows, free.functions.take(slice(0)), none, none, thresholds, workers)
    assert limited.log_evidence > nothing.log_evidence + 20.0
