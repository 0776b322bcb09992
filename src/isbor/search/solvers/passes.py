"""One pass: expand the log likelihood for active and proposed functions, and make the moves that gain.

Given the expansion, the paper's incremental loop (add, delete, reestimate, hundreds of times) runs on an
n × n matrix without access to the rows. Then the mode for the active functions is found.

The gains are exact for the quadratic model of the likelihood, which is inaccurate far from convergence. So a
pass adds at most as many functions as there are (or ten). If the objective recomputed at the new mode is
lower than before, only the first half of the moves is made, then a quarter, and so on: on the same rows, the
objective never falls from pass to pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import Move, WeightPosterior, gram_model, make_moves, weight_posterior
from isbor.inference.expansion import Expansion, expand_partly
from isbor.inference.mode import thresholds_given_weights
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions
from isbor.model.cuts import RowShape
from isbor.search.recorder import Recorder

__all__ = ["PassSettings", "successful_moves", "one_pass", "shrink"]


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Limits on the moves of a pass."""

    size_prior: float  # nats per unit of cost
    max_vectors: float  # largest number of functions after additions
    tol: float  # nats; moves that gain less are not made
    rough: bool = False  # whether the mode after the moves is a rough one (`fit_weights`)


def one_pass(
    rows: TrainingRows,
    model: SparseModel,
    fresh: Functions,
    settings: PassSettings,
    workers: Workers,
    recorder: Recorder,
    shape: RowShape | None = None,
) -> SparseModel:
    """Make the moves of one pass and record them; return the same model if none increases the objective.

    `shape` is the noise and the factors of the gaps of each row; None means noise 1 and factors 1.
    """
    candidates, expansion = model.functions, model.mode.expansion
    penalty = settings.size_prior * model.functions.cost
    if len(fresh):
        candidates = model.functions.followed_by(fresh)
        weights = np.concatenate([model.mode.weights, np.zeros(len(fresh))])
        thresholds = model.mode.thresholds
        penalty = np.concatenate([penalty, settings.size_prior * fresh.cost])
        expansion = expand_partly(rows, candidates, len(model), weights, thresholds, workers, shape)

    def model_after(after: WeightPosterior) -> SparseModel:
        weights, thresholds = _starting_point(expansion, after)
        functions = candidates.take(after.active)
        start = after.alpha, weights, thresholds
        fitted = fit_weights(rows, functions, *start, workers, shape, rough=settings.rough)
        if len(fresh) or model.shape_weights is None:
            return fitted
        if model.shape_model is None:
            return replace(fitted, shape_weights=model.shape_weights[:, after.active])
        of_shape = model.shape_model.take(after.active)
        return replace(fitted, shape_weights=of_shape.mode, shape_model=of_shape)

    try:
        moves, moved = successful_moves(expansion, penalty, model, settings, model_after)
    except UnresolvedError:  # the model itself is nearly singular: leave it as it is
        moves, moved = [], model
    recorder.record_pass(candidates, moves, model, moved, settings.size_prior)
    return moved


def shrink(
    rows: TrainingRows,
    model: SparseModel,
    settings: PassSettings,
    workers: Workers,
    recorder: Recorder,
    shape: RowShape | None = None,
) -> SparseModel:
    """Delete functions in passes with an increasing size prior until at most `max_vectors` remain."""
    nothing = model.functions.take(slice(0))
    size_prior = max(settings.size_prior, 1.0)
    while len(model) > settings.max_vectors:
        size_prior *= 1.3
        stricter = replace(settings, size_prior=size_prior)
        model = one_pass(rows, model, nothing, stricter, workers, recorder, shape)
    return model


def successful_moves(
    expansion: Expansion,
    penalty: FloatArray,
    model: SparseModel,
    settings: PassSettings,
    model_after: Callable[[WeightPosterior], SparseModel],
) -> tuple[list[Move], SparseModel]:
    """Return moves after which the recomputed objective is not lower, and the model after them."""
    n_active = len(model)
    quadratic = gram_model(expansion)
    before = weight_posterior(quadratic, np.arange(n_active), model.mode.alpha)
    max_additions = min(max(10, n_active), settings.max_vectors - n_active)
    max_moves = 100 + 10 * len(expansion.weights)
    while max_moves:
        after, moves = make_moves(
            quadratic, before, penalty, settings.tol, max_moves, max_additions, model.shape_model
        )
        if not moves:
            break
        try:
            moved = model_after(after)
            if moved.objective(settings.size_prior) >= model.objective(settings.size_prior):
                return moves, moved
        except UnresolvedError:
            pass
        max_moves = len(moves) // 2
    return [], model


def _starting_point(expansion: Expansion, after: WeightPosterior) -> tuple[FloatArray, FloatArray]:
    """Return the new mode by the quadratic model, or a point on the way if thresholds would lose order."""
    here = np.zeros_like(expansion.weights)
    here[after.active] = after.mean
    thresholds, step = thresholds_given_weights(expansion, here)
    start = expansion.weights[after.active]
    return start + step * (after.mean - start), thresholds
