r"""From a latent Gaussian to class probabilities and decisions.

At a new row the score is Gaussian, :math:`f \sim N(\mu, v)`, and with noise of standard deviation s (1
unless it varies, see `isbor.inference.noise`)

.. math:: P(y \le k) = \Psi\Big(\frac{b_k - \mu}{\sqrt{s^2 + v}}\Big),

which is monotone in k, so that class probabilities are nonnegative and sum to one. :math:`v = \phi^\top
(\Gamma_{ww} + A)^{-1} \phi` is the variance given the thresholds, φ being the centred functions of
`isbor.model.basis`. (The weights' block of the joint inverse would also count the common shift of scores and
thresholds, which predictions do not depend on.)

The class whose thresholds enclose μ is the median of this distribution: the decision that minimises the
expected absolute error. Other losses have their own decisions on the same probabilities.

Where the classes can be separated, nothing bounds the score, and the model is as sure of itself as there are
digits. But who has seen n labels and could account for all of them still expects one in n + 2 to be otherwise
(Laplace's rule of succession). So the model predicts as if a share of labels were drawn at random,

.. math:: P'(y = k) = (1 - \epsilon) P(y = k) + \epsilon/r, \qquad \epsilon = 1/(n + 2) .
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri

from isbor._core.types import FloatArray, IntArray
from isbor.data.warps import Preparation
from isbor.inference.mode import Mode, factorise
from isbor.inference.noise import noise_scale
from isbor.model.basis import Functions
from isbor.model.likelihood import edges, ordinal_probit

__all__ = [
    "FittedScore",
    "LatentModel",
    "Loss",
    "Member",
    "Score",
    "ScoreModel",
    "class_probabilities",
    "credible_bands",
    "decide",
    "insert_empty_levels",
    "log_class_probabilities",
    "margins",
]

Loss: TypeAlias = Literal["absolute", "zero_one", "quadratic"] | ArrayLike


@dataclass(frozen=True, slots=True)
class Score:
    """The score at some rows, a Gaussian, and the noise that comes on top of it."""

    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    noise: FloatArray  # (n,) variance of the noise
    lapse: float = 0.0  # share of labels that are drawn at random, ε

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of the latent response, score and noise together."""
        return np.sqrt(self.noise + self.variance)


class ScoreModel(Protocol):
    """A fitted score as a function of a row."""

    @property
    def n_functions(self) -> int:
        """How many numbers a row's score takes to compute."""

    def score(self, X: FloatArray) -> Score:
        """Return the score at encoded rows, (n, d)."""


@dataclass(frozen=True, slots=True)
class FittedScore:
    """A fitted model as part of an average."""

    functions: Functions
    mode: Mode
    noise_weights: FloatArray | None = None  # of the functions in the log of the noise; None: it is 1
    share: float = 1.0  # in the average; all parts' together are 1
    scale: float = 1.0  # by which score, thresholds and noise are multiplied before


@dataclass(frozen=True, slots=True)
class Member:
    """One score as a Gaussian at every row."""

    functions: Functions
    weights: FloatArray  # (m,)
    whitening: FloatArray  # (m, m), v = ‖whitening · φ‖²
    shift: float  # added to the score, so that all members' thresholds have the same mean
    noise_weights: FloatArray  # (m,) of the functions in the log of the noise
    noise_unit: float  # the noise where that log is zero
    share: float  # in the average

    def score(self, prepared: FloatArray) -> Score:
        """Return the score at prepared rows."""
        phi = self.functions(prepared)
        whitened = phi @ self.whitening.T
        variance: FloatArray = np.einsum("ij,ij->i", whitened, whitened)
        noise = (self.noise_unit * noise_scale(phi, self.noise_weights)) ** 2
        return Score(phi @ self.weights + self.shift, variance, noise)


@dataclass(frozen=True, slots=True)
class LatentModel:
    """The fitted score: a Gaussian at every row, the average of one or more members.

    Members are models of the same rows that different searches, or different kinds of dictionary, led to.
    Their average is again a sum of functions; its variance is the members' own plus that between them, and
    its noise the mean of theirs.
    """

    prepare: Preparation
    members: tuple[Member, ...]
    thresholds: FloatArray  # (r-1,) of the average
    lapse: float  # share of labels that are drawn at random, ε

    @classmethod
    def average(
        cls, prepare: Preparation, fitted: Sequence[FittedScore], total_weight: float
    ) -> "LatentModel":
        """Take weights and their covariances given the thresholds from modes.

        The total weight is that of the training rows.
        """
        cuts = [part.scale * part.mode.thresholds for part in fitted]
        thresholds = np.average(cuts, axis=0, weights=[part.share for part in fitted])
        members = []
        for part, own in zip(fitted, cuts, strict=True):
            m = len(part.functions)
            factor = factorise(part.mode.expansion.precision[:m, :m] + np.diag(part.mode.alpha))
            whitening = solve_triangular(factor.lower, np.diag(factor.scale), lower=True) if m else np.eye(0)
            members.append(
                Member(
                    part.functions,
                    part.scale * part.mode.weights,
                    part.scale * whitening,
                    shift=float(np.mean(thresholds - own)) if len(fitted) > 1 else 0.0,
                    noise_weights=np.zeros(m) if part.noise_weights is None else part.noise_weights,
                    noise_unit=part.scale,
                    share=part.share,
                )
            )
        return cls(prepare, tuple(members), thresholds, lapse=1.0 / (total_weight + 2.0))

    @property
    def n_functions(self) -> int:
        """Functions of all members."""
        return sum(len(member.functions) for member in self.members)

    def score(self, X: FloatArray) -> Score:
        """Return the score at unprepared rows."""
        return self.prepared_score(self.prepare(X))

    def prepared_score(self, prepared: FloatArray) -> Score:
        """Return the score at prepared rows."""
        scores = [member.score(prepared) for member in self.members]
        shares = np.array([member.share for member in self.members])
        means = np.stack([score.mean for score in scores])
        mean = shares @ means
        variance = shares @ (np.stack([score.variance for score in scores]) + (means - mean) ** 2)
        noise = shares @ np.stack([score.noise for score in scores])
        return Score(mean, variance, noise, self.lapse)


def class_probabilities(score: Score, thresholds: FloatArray) -> FloatArray:
    """Return P(y = k) for each row and level, shape (n, r)."""
    z = (edges(thresholds) - score.mean[:, None]) / score.spread[:, None]
    # A difference of two numbers near one has lost its digits; on the right use the other tail.
    right = z[:, :-1] > 0.0
    low = np.where(right, -z[:, 1:], z[:, :-1])
    high = np.where(right, -z[:, :-1], z[:, 1:])
    return _with_lapses(ndtr(high) - ndtr(low), score.lapse)


def log_class_probabilities(score: Score, thresholds: FloatArray) -> FloatArray:
    """Return ln P(y = k), accurate far into the tails, shape (n, r)."""
    cuts = edges(thresholds)
    log_p: FloatArray = np.stack(
        [
            ordinal_probit(score.mean, low, high, scale=score.spread).log_p
            for low, high in zip(cuts[:-1], cuts[1:], strict=True)
        ],
        axis=1,
    )
    if score.lapse > 0.0:
        log_p = np.logaddexp(log_p + np.log1p(-score.lapse), np.log(score.lapse / log_p.shape[1]))
    return log_p


def credible_bands(score: Score, thresholds: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the central credible interval of each class probability, two arrays of shape (n, r).

    P(y = k | f) is itself uncertain because f is. For the two end classes it is monotone in f; for the others
    it falls with the distance of f from the middle between the thresholds. So its quantiles are its values at
    quantiles of the score, or of that distance.
    """
    tail = 0.5 - 0.5 * level
    unit = np.sqrt(score.noise)[:, None]
    mean, spread, cuts = (
        score.mean[:, None] / unit,
        np.sqrt(score.variance)[:, None] / unit,
        thresholds / unit,
    )
    middle = 0.5 * (cuts[:, 1:] + cuts[:, :-1])
    half = 0.5 * np.diff(cuts)
    bands = []
    for share in (tail, 1.0 - tail):
        # The lowest class is likely where the score is low, the others where the distance is short.
        low = mean + spread * ndtri(1.0 - share)
        high = mean + spread * ndtri(share)
        far = _distance_quantile(mean - middle, spread, 1.0 - share)
        ends = ndtr(cuts[:, :1] - low), ndtr(high - cuts[:, -1:])
        inner = ndtr(half - far) - ndtr(-half - far)
        bands.append(_with_lapses(np.hstack([ends[0], inner, ends[1]]), score.lapse))
    return bands[0], bands[1]


def _with_lapses(probabilities: FloatArray, lapse: float) -> FloatArray:
    mixed: FloatArray = (1.0 - lapse) * probabilities + lapse / probabilities.shape[1]
    return mixed


def _distance_quantile(centre: FloatArray, spread: FloatArray, share: float) -> FloatArray:
    """Return the quantile of |x| for x ~ N(centre, spread²), elementwise, by bisection."""
    low, high = np.zeros_like(centre), np.abs(centre) + 10.0 * spread
    scale = np.where(spread > 0, spread, 1.0)
    for _ in range(60):
        x = 0.5 * (low + high)
        below = ndtr((x - centre) / scale) - ndtr((-x - centre) / scale) < share
        low, high = np.where(below, x, low), np.where(below, high, x)
    return np.where(spread > 0, 0.5 * (low + high), np.abs(centre))


def decide(score: Score, thresholds: FloatArray, loss: Loss) -> IntArray:
    """Return the level of least expected loss for each row; ties go to the lower level."""
    if isinstance(loss, str) and loss == "absolute":
        # b_{k-1} < f ≤ b_k: the number of thresholds strictly below.
        return np.searchsorted(thresholds, score.mean, side="left")
    levels = np.arange(len(thresholds) + 1)
    if isinstance(loss, str):
        costs = {"zero_one": levels[:, None] != levels, "quadratic": (levels[:, None] - levels) ** 2}
        if loss not in costs:
            raise ValueError(
                f"loss={loss!r} is unknown; give 'absolute', 'zero_one', 'quadratic' "
                "or a cost matrix with one row per true and one column per predicted class."
            )
        cost = costs[loss].astype(float)
    else:
        cost = np.asarray(loss, dtype=float)
        if cost.shape != (len(levels), len(levels)) or not np.isfinite(cost).all():
            raise ValueError(
                f"The cost matrix has shape {cost.shape}; finite numbers of shape "
                f"({len(levels)}, {len(levels)}) are needed: cost[true, predicted], classes in order."
            )
    best: IntArray = np.argmin(class_probabilities(score, thresholds) @ cost, axis=1)
    return best


def margins(score: Score, thresholds: FloatArray) -> FloatArray:
    """Return each level's distance to its nearer threshold, in units of the predictive spread, (n, r)."""
    z = (score.mean[:, None] - edges(thresholds)) / score.spread[:, None]
    return np.minimum(z[:, :-1], -z[:, 1:])


def insert_empty_levels(
    thresholds: FloatArray,
    observed: IntArray,
    n_levels: int,
    *,
    total_weight: float,
    scores: FloatArray,
) -> FloatArray:
    """Return thresholds for all levels, those without training rows included.

    Thresholds between observed levels are given. An empty level gets probability
    p = 1/(total_weight + n_levels) where it is most likely: between two observed levels at the threshold
    that it splits, at an end at the training row nearest to it (`scores` are means and spreads of the
    training rows' latent responses, shape (n, 2)). All empty levels together get at most a quarter.
    """
    # No less than what thresholds in floating point can hold apart.
    p = min(max(1.0 / (total_weight + n_levels), 1e-9), 0.25 / n_levels)
    mean, spread = scores.T
    below, above = int(observed[0]), n_levels - 1 - int(observed[-1])
    pieces = [[min(np.min(mean + z * spread), thresholds[0] + z)] for z in ndtri(p * np.arange(1, below + 1))]
    for threshold, empty in zip(thresholds, np.diff(observed) - 1, strict=True):
        pieces.append(threshold + ndtri(0.5 + p * (np.arange(empty + 1) - 0.5 * empty)))
    pieces += [
        [max(np.max(mean - z * spread), thresholds[-1] - z)] for z in ndtri(p * np.arange(above, 0, -1))
    ]
    return np.concatenate(pieces)
