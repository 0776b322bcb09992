r"""Class frequencies and probabilities within intervals of labels.

Row i, of weight :math:`v_i`, is known to have one of the neighbouring classes :math:`I_i`. Suppose that labels
are *coarsened at random*: the probability that exactly :math:`I_i` is reported is the same for all classes in
it. Then the rows' likelihood is

.. math:: L(\theta) = \sum_i v_i \ln P(I_i \mid x_i), \qquad P(I \mid x) = \sum_{k \in I} p_\theta(k \mid x) .

For an ordered probit, :math:`P(I \mid x)` is the difference of two normal distribution functions at thresholds
that need not be neighbours.

EM
--
With :math:`s_{ik} = p(k \mid x_i) / P(I_i \mid x_i)` for classes in the interval, zero elsewhere, Jensen's
inequality gives for every :math:`\theta`

.. math:: L(\theta) \ge \sum_i v_i \sum_k s_{ik} \ln p_\theta(k \mid x_i) - \sum_i v_i \sum_k s_{ik} \ln s_{ik},

with equality where s belongs to :math:`\theta`. The first term is the log-likelihood of a table in which row i
occurs once for each class of its interval, with the weight :math:`v_i s_{ik}`: what any classifier with weights
can be fitted to. Fits and new s in turn never lower L, nor L plus a penalty or a log prior of
:math:`\theta` that the fit maximises as well, and where they stay as they are the gradients of both sides are
equal. So the fixed points are the stationary points of the penalised likelihood of intervals. Of an ordered
probit this is concave, since the normal distribution has a logarithmically concave density, and there is one.

Held-out probabilities
----------------------
A classifier that interpolates its rows returns the s that it was given: every s is then a fixed point, and EM
remains where it began. The model is too flexible for maximum likelihood, with labels that are known as well;
but these cannot be talked into what the model predicts. What is wanted is not the maximum but the posterior
distribution of the labels. For a Bayesian model with the data D, and :math:`D_{-i}` all but row i,

.. math:: P(y_i = k \mid D) \propto p(k \mid x_i, D_{-i}), \quad k \in I_i,

by Bayes' theorem: the probability from a model that has *not seen the row*. Here :math:`D_{-i}` are the other
rows with their intervals, for which their weighted copies stand. With s from held-out folds instead of
the rows of the fit, a row cannot confirm its own guess. A fixed point is then no maximum of a likelihood but
a self-consistent table, and for a model of few parameters hardly another one.

Without features
----------------
Where :math:`p(k \mid x) = \pi_k`, the fixed point of

.. math:: \pi_k = \frac{1}{V + r}\Big(1 + \sum_i v_i \frac{\pi_k 1[k \in I_i]}{\sum_{j \in I_i} \pi_j}\Big),
    \qquad V = \sum_i v_i,

has Turnbull's (1976) self-consistent frequencies but for the 1, one row of each class, which keeps classes that
occur only within intervals above zero, where they would remain for ever. It is unique, as the mode of a
strictly concave log posterior.
"""

import numpy as np

from isbor._core.types import BoolArray, FloatArray

__all__ = ["class_frequencies", "within"]

_TOLERANCE = 1e-9
_MOST_ROUNDS = 10_000


def within(proba: FloatArray, inside: BoolArray, otherwise: FloatArray) -> FloatArray:
    """Return P(k | interval) for each row and class, (n, r).

    Rows whose interval has probability zero get those of `otherwise`.
    """
    share = np.where(inside, proba, 0.0)
    total = share.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, share / np.where(total > 0.0, total, 1.0), otherwise)


def class_frequencies(inside: BoolArray, weight: FloatArray) -> FloatArray:
    """Return the self-consistent frequencies of the classes, (r,), for intervals (n, r) of rows."""
    kinds, kind = np.unique(inside, axis=0, return_inverse=True)
    total = np.bincount(kind.ravel(), weight, minlength=len(kinds))
    n_levels = inside.shape[1]
    frequency = np.full(n_levels, 1.0 / n_levels)
    for _ in range(_MOST_ROUNDS):
        before = frequency
        share = within(frequency[None], kinds, kinds / n_levels)
        frequency = (1.0 + total @ share) / (total.sum() + n_levels)
        if np.abs(frequency - before).max() <= _TOLERANCE:
            break
    return frequency
