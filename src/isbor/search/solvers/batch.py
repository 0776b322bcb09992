r"""The batch solver: start with one function on every row, and update all precisions by MacKay's rule.

At the mode of weights and thresholds (see `isbor.inference.mode`), with Σ the inverse of the posterior
precision,

.. math:: \gamma_i = 1 - \alpha_i \Sigma_{ii}, \qquad \alpha_i \leftarrow \gamma_i / w_i^2 .

γ, between 0 and 1, measures how well the labels determine a weight. The fixed point of the rule is a zero of
the gradient of the evidence in :math:`\ln\alpha_i`, if the dependence of the mode on α is ignored. The
precisions of functions that are not needed grow without limit. A function is deleted when its reach, the
prior standard deviation of its contribution to the score, is below a thousandth of the noise. The reach is
:math:`\sqrt{h_i/\alpha_i}` with h the mean square of the function.

If the classes are nearly separable, the dependence of the mode on α matters, and the rule can cycle. So the
best model of the remaining functions is stored and returned when further updates do not improve on it.

The first mode takes O(N³) time, later ones O(N m²) for m remaining functions. All functions are updated
together, so the result does not depend on the order of rows.
"""

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import Move
from isbor.inference.mode import posterior_precision
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions, RowDictionary
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.starts import INITIAL_REACH, start_from

__all__ = ["mackay_precisions", "solve_batch"]

_NEGLIGIBLE = 1e-3  # reach below which a function is deleted, in units of the noise
_SETTLED = 1e-3  # largest change of ln α at convergence
# The search ends after this many updates in a row that gain less than _GAIN nats and delete no function.
_PATIENCE, _GAIN = 20, 1e-3


def mackay_precisions(model: SparseModel) -> FloatArray:
    """Return γ/w² for each function, infinite if its weight is zero."""
    alpha, w = model.mode.alpha, model.mode.weights
    variance = np.diag(factorise(posterior_precision(model.mode)).inverse())[: len(alpha)]
    gamma = np.clip(1.0 - alpha * variance, 0.0, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(w == 0.0, np.inf, np.maximum(gamma, 1e-300) / w**2)


def solve_batch(
    rows: TrainingRows,
    dictionary: RowDictionary,
    start: SparseModel | None,
    settings: SolverSettings,
    workers: Workers,
    recorder: Recorder,
) -> tuple[SparseModel, StopReason]:
    """Update all precisions until they converge.

    If `start` is None, start with one function per row, scaled so that the total prior variance matches the
    usual start.
    """
    everything = dictionary.basis(np.arange(len(rows)))
    if start is None:
        model = start_from(rows, everything, workers, reach=INITIAL_REACH / np.sqrt(len(rows)))
    else:
        model = start
    recorder.begin_run(model, 0.0)
    best, unsuccessful = model, 0
    while recorder.passes < settings.max_iter:
        alpha = mackay_precisions(model)
        kept = _reach_of(model.functions, alpha, rows) > _NEGLIGIBLE
        if kept.all() and np.max(np.abs(np.log(alpha / model.mode.alpha)), initial=0.0) < _SETTLED:
            return model, StopReason.SETTLED
        before = model
        model = fit_weights(
            rows,
            model.functions.take(kept),
            alpha[kept],
            model.mode.weights[kept],
            model.mode.thresholds,
            workers,
        )
        deletions = [Move("delete", int(origin), np.inf, 0.0) for origin in before.functions.origin[~kept]]
        recorder.record_pass(everything, deletions, before, model, 0.0)
        improved = deletions or model.log_evidence > best.log_evidence + _GAIN
        unsuccessful = 0 if improved else unsuccessful + 1
        if deletions or model.log_evidence > best.log_evidence:
            best = model
        if unsuccessful == _PATIENCE:
            return best, StopReason.CONVERGED
    return model, StopReason.MAX_ITER


def _reach_of(functions: Functions, alpha: FloatArray, rows: TrainingRows) -> FloatArray:
    """Return the prior standard deviation of each function's contribution to the score."""
    height = np.square(functions(rows.reference.X)).mean(axis=0)
    reach: FloatArray = np.sqrt(height / alpha)
    return reach
