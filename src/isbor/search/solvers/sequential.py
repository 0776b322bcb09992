"""The paper's Algorithm 1 with its errors corrected: one move at a time, all rows as candidates.

The N × N matrix of basis functions is stored, and after each move the mode, Σ, S and Q are recomputed from it
in O(N² M). This is a slow and simple way to maximise the same objective as the Gram-space solver, for small
problems and for checks.
"""

from dataclasses import dataclass

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import Move, WeightPosterior, best_move, rounding_floor
from isbor.inference.mode import posterior_covariance
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions, RowDictionary
from isbor.model.likelihood import edges, ordinal_probit, scatter_edges
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.restarts import stop_reason, with_restarts
from isbor.search.starts import initial_model

__all__ = ["solve_sequential"]


@dataclass(frozen=True, slots=True)
class _Dense:
    """All basis functions at all rows."""

    rows: TrainingRows
    phi: FloatArray  # (N, N)

    def posterior(self, model: SparseModel) -> tuple[WeightPosterior, FloatArray]:
        """Return Σ, μ, S and Q at the mode, computed by their definitions, and the rounding floor of S."""
        y, v = self.rows.y, self.rows.weight
        edge = edges(model.mode.thresholds)
        active = self.phi[:, model.functions.origin]
        at = ordinal_probit(active @ model.mode.weights, edge[y], edge[y + 1])
        # -∂² ln p/∂f∂θ of each row, for θ = (active weights, thresholds).
        t = len(model.mode.thresholds)
        mixed = np.zeros((len(y), t + 2))
        scatter_edges(mixed, y, -at.lower_curvature, -at.upper_curvature)
        towards = np.hstack([at.curvature[:, None] * active, mixed[:, 1:-1]])
        cross = self.phi.T @ (v[:, None] * towards)
        covariance = posterior_covariance(model.mode)
        square = (v * at.curvature) @ self.phi**2
        sparsity = square - np.einsum("ij,jk,ik->i", cross, covariance, cross, optimize=True)
        quality = self.phi.T @ (v * at.slope)
        m = len(model.functions.origin)
        state = WeightPosterior(
            model.functions.origin,
            model.mode.alpha,
            covariance[:m, :m],
            model.mode.weights,
            sparsity,
            quality,
        )
        return state, rounding_floor(square, float(v @ at.curvature))


def solve_sequential(
    rows: TrainingRows,
    dictionary: RowDictionary,
    start: SparseModel | None,
    settings: SolverSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Make the best move and find the new mode, repeatedly, while the objective rises."""
    candidates = dictionary.basis(np.arange(len(rows)))
    dense = _Dense(rows, candidates(rows.X))

    def step(model: SparseModel, size_prior: float) -> SparseModel | None:
        may_add = len(model) < settings.max_vectors
        moved = _best_improvement(dense, candidates, model, size_prior, settings.tol, may_add, workers)
        if moved is None:
            return None
        move, after = moved
        recorder.record_pass(candidates, [move], model, after, size_prior)
        return after

    def climb(model: SparseModel) -> tuple[SparseModel, bool]:
        size_prior = max(settings.size_prior, 1.0)
        while len(model) > settings.max_vectors:  # raise the size prior until the model is small enough
            after = step(model, size_prior)
            if after is None:
                size_prior *= 1.3
            else:
                model = after
        while recorder.passes < settings.max_iter and not workers.is_late():
            after = step(model, settings.size_prior)
            if after is None:
                return model, True
            model = after
        return model, False

    model, finished = with_restarts(
        climb,
        initial_model(rows, dictionary, workers) if start is None else start,
        rows=rows,
        dictionary=dictionary,
        settings=settings,
        workers=workers,
        recorder=recorder,
    )
    return model, stop_reason(finished, workers)


def _best_improvement(
    dense: _Dense,
    candidates: Functions,
    model: SparseModel,
    size_prior: float,
    tol: float,
    may_add: bool,
    workers: Workers,
) -> tuple[Move, SparseModel] | None:
    """Return the best move by the quadratic model that also raises the recomputed objective."""
    state, floor = dense.posterior(model)
    excluded: set[int] = set()
    while True:
        move = best_move(state, floor, penalty=size_prior, excluded=excluded, may_add=may_add)
        if move is None or move.gain < tol:
            return None
        try:
            after = _after(dense.rows, candidates, model, move, workers)
        except UnresolvedError:
            after = model
        if after.objective(size_prior) > model.objective(size_prior):
            return move, after
        excluded.add(move.candidate)


def _after(
    rows: TrainingRows, candidates: Functions, model: SparseModel, move: Move, workers: Workers
) -> SparseModel:
    """Return the model after a move, refitted."""
    kept = model.functions.origin != move.candidate
    functions = model.functions.take(kept)
    alpha, weights = model.mode.alpha[kept], model.mode.weights[kept]
    if move.kind != "delete":
        before = model.mode.weights[~kept]
        functions = functions.followed_by(candidates.take(np.array([move.candidate])))
        alpha = np.append(alpha, move.alpha)
        weights = np.append(weights, before if before.size else 0.0)
    return fit_weights(rows, functions, alpha, weights, model.mode.thresholds, workers)
