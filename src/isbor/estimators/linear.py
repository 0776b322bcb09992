r"""`OrderedProbit`, the linear baseline.

The log-likelihood of an ordered probit is concave in slopes and thresholds, so Newton steps find its maximum.
Where the classes can be separated, or where columns are collinear, it has no single finite maximum. So the
slopes w of the standardised columns and the thresholds b get a weak Gaussian prior, and

.. math:: \frac{1}{V} \sum_i v_i \ln p(y_i \mid x_i, w, b) - \frac{\epsilon}{2} \lVert w \rVert^2
    - \frac{\epsilon^2}{2} \lVert b \rVert^2, \qquad V = \sum_i v_i, \quad \epsilon = 10^{-8},

is maximised, with v the weights of the rows: the prior of a slope weighs as much as one row in a hundred
million. That of a threshold only decides where it lies between classes so far apart that no row is near it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, LabelArray
from isbor.data.cells import Missing
from isbor.data.rows import TrainingRows
from isbor.data.weights import ClassWeight
from isbor.estimators.latent import LatentClassifier, thresholds_of_all_levels
from isbor.inference.expansion import Expansion, expand
from isbor.inference.mode import find_mode, starting_thresholds
from isbor.inspection.score import Ridge, ScoreSum, plain_functions
from isbor.model.linear import LinearModel
from isbor.prediction.probabilities import lapse_after

__all__ = ["OrderedProbit"]

_PRIOR = 1e-8  # precision of the prior, as a share of the rows' weight: ε
_TOLERANCE = 1e-14  # on the Newton decrement, as a share of the rows' weight


class OrderedProbit(LatentClassifier):
    r"""Ordered probit regression: a linear score, cut into ordered classes by thresholds.

    The textbook model, fitted by maximum likelihood,

    .. math:: P(y \le k \mid x) = \Psi(b_k - w^\top x) .

    It has nothing to tune and is a baseline for the other estimators: what they gain over it, they gain by
    not being linear. It is not exported from `isbor`; import it from `isbor.estimators.linear`.

    Parameters
    ----------
    missing : "auto", "indicator" or "error", default="auto"
        What to do with missing cells, as in `ISBOR`.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings; for others it names levels that may be missing from y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label. "balanced" gives all classes the same total weight.
    n_jobs : int or None, default=None
        Threads; None means all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    coef_ : ndarray of shape (n_columns,)
        Slopes of the encoded columns, see `column_names_`, in units of the noise: one unit more in a column
        adds its slope to the score. 0 for a constant column.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score.
    n_iter_ : int
        Evaluations of the likelihood.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    isbor.ISBOR : A score that is not linear.

    Notes
    -----
    A Gaussian prior keeps the slopes finite where the classes can be separated, and unique where columns are
    collinear. On the mean log-likelihood of a row it is a penalty of 0.5e-8 times the sum of the squared
    slopes of the standardised columns, too little to matter elsewhere. Of the slopes of a category only the
    differences matter; they sum to zero, and an unseen category has slope zero, the mean of the others.

    Slopes and thresholds are taken as known: probabilities do not allow for their uncertainty, intervals of
    probabilities have no width, and the standard deviation of the score is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor.estimators.linear import OrderedProbit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.digitize(X @ [1.0, -2.0] + rng.normal(size=1000), [-1.0, 1.0])
    >>> model = OrderedProbit().fit(X, y)
    >>> bool(np.allclose(model.coef_, [1.0, -2.0], atol=0.2))
    True
    """

    _model: LinearModel
    coef_: FloatArray
    thresholds_: FloatArray
    n_iter_: int

    def __init__(
        self,
        *,
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(missing, classes, class_weight, n_jobs, random_state=None)  # nothing is drawn

    def _fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        training = self._read_training(X, y, sample_weight)
        scaling = training.scaling
        with Workers(self.n_jobs) as workers:
            line = _maximum_likelihood(training.rows, workers)
            model = LinearModel(scaling, line.slopes, lapse_after(training.rows.total_weight))
            thresholds = thresholds_of_all_levels(training, model, line.thresholds, workers)
            self._model, self._thresholds = model, thresholds
            n_parameters = np.count_nonzero(scaling.varying) + len(line.thresholds)
            # Schwarz's approximation of the log evidence.
            evidence = line.log_likelihood - 0.5 * n_parameters * np.log(training.rows.total_weight)
            self._learn_beside(training, evidence, workers)
        slopes = line.slopes * scaling.factor
        # Scores are computed from centred columns, and reported for the columns as they are.
        centre = -float((scaling.mean * scaling.lift) @ slopes)
        with np.errstate(over="ignore"):  # the slope of a column of tiny numbers may be infinite
            self.coef_ = slopes * scaling.lift
        self._centre, self._unit = centre, 1.0
        self.thresholds_ = thresholds - centre
        self.n_iter_ = line.n_iter

    def _score_sum(self) -> ScoreSum:
        d = len(self._model.weights)
        return ScoreSum(
            self._model.scaling,
            self._encoding.feature,
            plain_functions(np.zeros((d, d)), np.eye(d), ramp=True),
            self._model.weights,
            -self._centre,
            np.full(d, -1),
            Ridge(degree=1),
        )


@dataclass(frozen=True, slots=True)
class _Line:
    slopes: FloatArray  # (d,)
    thresholds: FloatArray  # (r-1,)
    n_iter: int
    log_likelihood: float


@dataclass(frozen=True, slots=True)
class _TableColumns:
    """The columns of the training rows as basis functions."""

    X: FloatArray

    def __len__(self) -> int:
        return int(self.X.shape[1])

    def __call__(self, block: slice) -> FloatArray:
        return np.ascontiguousarray(self.X[block].T)


def _maximum_likelihood(rows: TrainingRows, workers: Workers) -> _Line:
    """Maximise the likelihood times the weak prior of the module's docstring."""
    n, d = rows.X.shape
    if d > n:
        # The slopes are a combination of the rows, so they lie in the n dimensions that the rows span.
        directions, triangle = np.linalg.qr(rows.X.T)
        line = _maximum_likelihood(replace(rows, X=np.ascontiguousarray(triangle.T)), workers)
        return replace(line, slopes=directions @ line.slopes)
    columns = _TableColumns(rows.X)
    n_iter = 0

    def expand_at(slopes: FloatArray, thresholds: FloatArray) -> Expansion:
        nonlocal n_iter
        n_iter += 1
        return replace(expand(rows, columns, slopes, thresholds, workers), held_precision=_PRIOR**2 * total)

    total = rows.total_weight
    mode = find_mode(
        expand_at,
        alpha=np.full(d, _PRIOR * total),
        weights=np.zeros(d),
        thresholds=starting_thresholds(rows.y, rows.weight),
        tol=_TOLERANCE * total,
    )
    return _Line(mode.weights, mode.thresholds, n_iter, mode.expansion.log_likelihood)
