r"""The batch sparse Bayesian model: a function on every row at first, and precisions by MacKay's rule.

At the mode of weights and thresholds (see `isbor.inference.mode`), with Σ the inverse of the posterior
precision,

.. math:: \gamma_i = 1 - \alpha_i \Sigma_{ii}, \qquad \alpha_i \leftarrow \gamma_i / w_i^2 .

γ between 0 and 1 says how well the labels determine a weight, and the rule is what a zero of the evidence's
gradient in :math:`\ln\alpha_i` satisfies, the mode's dependence on α aside. Precisions of functions that are
not needed grow without limit. A function leaves when the part of the score that its prior still allows,
:math:`\sqrt{h_i/\alpha_i}` with h the mean square of the function, is below a thousandth of the noise.

Where the classes are nearly separable the mode's dependence on α matters, and the rule can go round in
circles. So the best model of the functions that are left is kept in mind, and it is taken when updates no
longer find a better.

The first mode takes O(N³), later ones O(N m²) with m the functions that are left. All functions change
together, so nothing depends on the order of rows.
"""

import numpy as np

from isbor._core.linalg import factorise
from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.evidence import Move
from isbor.inference.mode import posterior_precision
from isbor.model.basis import Functions, RowDictionary
from isbor.prediction.sparse import SparseModel, fit_weights
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.starts import INITIAL_REACH, start_from

__all__ = ["mackay_precisions", "solve_batch"]

_NEGLIGIBLE = 1e-3  # part of the score, in units of the noise
_SETTLED = 1e-3  # largest change of a precision's logarithm
# The end has come when so many updates in a row gain less than so many nats and no function leaves.
_PATIENCE, _GAIN = 20, 1e-3


def mackay_precisions(model: SparseModel) -> FloatArray:
    """Return γ/w² for each function; infinite where a weight is zero."""
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
    """Update all precisions until they settle.

    Without a start every row has a function, scaled so that the total prior variance matches the usual start.
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
        gone = [Move("delete", int(origin), np.inf, 0.0) for origin in before.functions.origin[~kept]]
        recorder.record_pass(everything, gone, before, model, 0.0)
        improved = gone or model.log_evidence > best.log_evidence + _GAIN
        unsuccessful = 0 if improved else unsuccessful + 1
        if gone or model.log_evidence > best.log_evidence:
            best = model
        if unsuccessful == _PATIENCE:
            return best, StopReason.CONVERGED
    return model, StopReason.MAX_ITER


def _reach_of(functions: Functions, alpha: FloatArray, rows: TrainingRows) -> FloatArray:
    """Return the part of the score that each function's prior allows, in units of the noise."""
    height = np.square(functions(rows.head(1000).X)).mean(axis=0)
    reach: FloatArray = np.sqrt(height / alpha)
    return reach
