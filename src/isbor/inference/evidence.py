r"""The evidence as a function of one prior precision at a time, in Gram space.

Around a point θ0 = (w0, b0), the log likelihood is approximated by the quadratic with gradient g and
precision Γ. The thresholds are always in the model, with prior precision β, so they are integrated out once:

.. math::
    G = \Gamma_{ww} - \Gamma_{wb}(\Gamma_{bb} + \beta)^{-1}\Gamma_{bw}, \qquad
    h = G w_0 + g_w - \Gamma_{wb}(\Gamma_{bb} + \beta)^{-1} (g_b - \beta b_0) .

What remains is a linear Gaussian model in the weights. For the active set A with precisions α,

.. math::
    \Sigma = (G_{AA} + \operatorname{diag}\alpha)^{-1}, \quad \mu = \Sigma h_A, \quad
    Q_j = h_j - G_{jA}\mu, \quad S_j = G_{jj} - G_{jA}\Sigma G_{Aj},

and its log evidence, up to a constant, is ½ h_A·μ + ½ ln|diag α| + ½ ln|Σ|. As a function of one precision,
it is maximal at :math:`\alpha_j = s_j^2/(q_j^2 - s_j)` if :math:`q_j^2 > s_j`, else at infinity (the function
is deleted). Here s = S, q = Q for a function outside the model, and s = 1/Σ_jj - α_j, q = μ_j/Σ_jj for one
inside. (αS/(α - S) equals s in exact arithmetic but cancels if α is small.)

The gains of the three moves, exact for the quadratic model, with a size-prior penalty of c nats per function
(ln p(M) = -cM; c may differ between functions):

.. math::
    \text{add} &: \tfrac12 (Q^2/S - 1 - \ln(Q^2/S)) - c \\
    \text{reestimate} &: \tfrac12\ln\frac{\alpha'}{\alpha} - \tfrac12\ln(1 + (\alpha' - \alpha)\Sigma_{jj})
        - \tfrac12\frac{(\alpha' - \alpha)\mu_j^2}{1 + (\alpha' - \alpha)\Sigma_{jj}} \\
    \text{delete} &: -\tfrac12(\mu_j^2/\Sigma_{jj} + \ln(\alpha\Sigma_{jj})) + c

Each move changes Σ by a matrix of rank one. μ, S and Q of all n candidates are updated in O(nM), by compiled
code (`isbor.inference.compiled_moves`).

Source: Tipping & Faul, Fast marginal likelihood maximisation for sparse Bayesian models (2003);
symbols in docs/notation.md.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from isbor._core.linalg import UnresolvedError, factorise
from isbor._core.trace import MoveKind
from isbor._core.types import FloatArray, IntArray
from isbor.inference import compiled_moves
from isbor.inference.compiled_moves import KINDS, NO_MOVE, Missing, ShapePosterior, State
from isbor.inference.expansion import Expansion
from isbor.inference.shape import ShapeModel

__all__ = [
    "GramModel",
    "Move",
    "WeightPosterior",
    "best_move",
    "gram_model",
    "make_moves",
    "rounding_floor",
    "weight_posterior",
]

# A candidate is collinear with the active functions to working precision if less than this share of its
# square lies outside their span: the rest is rounding error.
_COLLINEAR = 1e-10
# A candidate is constant to working precision if its mean square after centring is below this: functions
# have values up to 1, so the rest is the rounding error of centring.
_CONSTANT = 1e-14


@dataclass(frozen=True, slots=True)
class GramModel:
    """The quadratic model of the log likelihood for n candidates, thresholds integrated out."""

    gram: FloatArray  # (n, n), G
    linear: FloatArray  # (n,), h
    floor: FloatArray  # (n,), values of S below this are rounding errors
    rest: Missing | None = None  # if rows of G are missing; they are added when they are needed


@dataclass(frozen=True, slots=True)
class WeightPosterior:
    """The posterior of the m active weights, and sparsity S and quality Q of all n candidates."""

    active: IntArray  # (m,) candidates in the model
    alpha: FloatArray  # (m,)
    covariance: FloatArray  # (m, m), Σ
    mean: FloatArray  # (m,), μ
    sparsity: FloatArray  # (n,), S
    quality: FloatArray  # (n,), Q


@dataclass(frozen=True, slots=True)
class Move:
    """A change of one prior precision."""

    kind: MoveKind
    candidate: int
    alpha: float  # the new precision; infinite for a deletion
    gain: float  # of the objective, in nats


def gram_model(expansion: Expansion) -> GramModel:
    """Integrate the thresholds out of a second-order expansion."""
    n = len(expansion.weights)
    precision, beta, later = expansion.precision, expansion.threshold_precision, expansion.later
    inside = precision[n:, n:]
    root = factorise(inside + beta * np.eye(len(inside))).whitening()
    cross = root @ precision[n:, :n]
    gram = precision[:n, :n].copy()
    rest = None
    if later is None:
        gram -= cross.T @ cross
        linear = gram @ expansion.weights
    else:
        first = later.n_first
        diagonal = gram.diagonal() - np.einsum("ij,ij->j", cross, cross)
        gram[:, :first] -= cross.T @ cross[:, :first]
        gram[:first, first:] = gram[first:, :first].T
        np.fill_diagonal(gram, diagonal)
        linear = gram[:, :first] @ expansion.weights[:first]
        rest = Missing(np.arange(n) >= first, later.values, later.curvature, np.ascontiguousarray(cross))
    slope = root @ (expansion.gradient[n:] - beta * expansion.thresholds)
    linear += expansion.gradient[:n] - slope @ cross
    return GramModel(gram, linear, rounding_floor(precision.diagonal()[:n], float(inside.sum())), rest)


def rounding_floor(square: FloatArray, total_curvature: float) -> FloatArray:
    """Return the sparsity S below which a candidate differs from the active functions only by rounding.

    `square` is the diagonal of Γ_ww, and `total_curvature` its value for a function equal to 1.
    """
    return np.maximum(_COLLINEAR * square, _CONSTANT * total_curvature)


def weight_posterior(model: GramModel, active: IntArray, alpha: FloatArray) -> WeightPosterior:
    """Return the posterior for an active set, computed from a new factorisation.

    Raise `UnresolvedError` if the active functions are collinear to working precision.
    """
    m, n = len(active), len(model.linear)
    memory = np.empty((m, m)), np.empty(m), np.empty(n), np.empty(n)
    state = State(np.array(active, dtype=np.intp), np.array(alpha, dtype=np.float64), *memory)
    if not compiled_moves.posterior(model.gram, model.linear, m, state):
        raise UnresolvedError
    return WeightPosterior(*state)


def best_move(
    state: WeightPosterior,
    floor: FloatArray,
    *,
    penalty: float | FloatArray = 0.0,
    may_add: bool = True,
    excluded: Collection[int] = (),
) -> Move | None:
    """Return the move with the largest gain; None if there is no possible move.

    Ties go to a move of an active function, then to the first one. Candidates with a sparsity below `floor`
    (see `rounding_floor`) and the `excluded` ones are skipped. `penalty` is the size-prior penalty in nats:
    one number, or one for each candidate.
    """
    skipped = np.zeros(floor.shape, dtype=np.bool_)
    skipped[np.fromiter(excluded, dtype=np.intp)] = True
    penalties = np.full(floor.shape, penalty, dtype=np.float64)
    kind, candidate, alpha, gain = compiled_moves.best_move(
        _compact(state), len(state.active), floor, penalties, may_add, skipped
    )
    return None if kind == NO_MOVE else Move(KINDS[kind], candidate, alpha, gain)


def make_moves(
    model: GramModel,
    state: WeightPosterior,
    penalty: FloatArray,
    tol: float,
    max_moves: int,
    max_additions: float,
    shape: ShapeModel | None = None,
) -> tuple[WeightPosterior, list[Move]]:
    """Make the best move repeatedly while it gains at least `tol`; return the posterior and the moves.

    If `shape` is given, what a candidate is worth to it is set off against its penalty.
    Σ and μ are recomputed when rounding errors have accumulated. If that shows the functions to be collinear,
    the last move is not made, and none after it.
    """
    n, rest = len(model.linear), model.rest
    if rest is None:
        rest = Missing(np.zeros(n, np.bool_), np.empty((n, 0)), np.empty(0), np.empty((0, n)))
    after, m, *record = compiled_moves.make_moves(
        model.gram,
        model.linear,
        model.floor,
        rest,
        _compact(state),
        _shape_posterior(shape, n),
        penalty,
        float(tol),
        max_moves,
        float(max_additions),
    )
    made = zip(*(column.tolist() for column in record), strict=True)
    moves = [Move(KINDS[kind], candidate, alpha, gain) for kind, candidate, alpha, gain in made]
    posterior = WeightPosterior(
        after.active[:m].copy(),
        after.alpha[:m].copy(),
        after.covariance[:m, :m].copy(),
        after.mean[:m].copy(),
        after.sparsity,
        after.quality,
    )
    return posterior, moves


def _shape_posterior(shape: ShapeModel | None, n: int) -> ShapePosterior:
    """Return the posterior of the shape, in memory of its own."""
    if shape is None:
        return ShapePosterior(np.empty((0, n, n)), np.empty((0, n)), np.empty((0, n)))
    covariance = np.stack([factor.inverse() for factor in shape.factors])
    mean = np.einsum("qij,qj->qi", covariance, shape.linear)
    return ShapePosterior(*(np.ascontiguousarray(part) for part in (covariance, mean, shape.prior)))


def _compact(state: WeightPosterior) -> State:
    """Return the posterior in the types and layout of compiled code."""
    return State(
        np.ascontiguousarray(state.active, dtype=np.intp),
        np.ascontiguousarray(state.alpha),
        np.ascontiguousarray(state.covariance),
        np.ascontiguousarray(state.mean),
        state.sparsity,
        state.quality,
    )
