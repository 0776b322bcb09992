r"""Class frequencies and probabilities within intervals of labels.

Row i, of weight :math:`v_i`, is known to have one of the neighbouring classes :math:`I_i`. Suppose that
labels are *coarsened at random*: the probability that exactly :math:`I_i` is reported is the same for all
classes in it. Then the log-likelihood of the rows is

.. math:: L(\theta) = \sum_i v_i \ln P(I_i \mid x_i), \qquad
    P(I \mid x) = \sum_{k \in I} p_\theta(k \mid x) .

For an ordered probit, :math:`P(I \mid x)` is a difference of two normal distribution functions, at thresholds
that need not be neighbours.

EM
--
With :math:`s_{ik} = p(k \mid x_i) / P(I_i \mid x_i)` for classes in the interval and zero for others,
Jensen's inequality gives for every :math:`\theta`

.. math:: L(\theta) \ge \sum_i v_i \sum_k s_{ik} \ln p_\theta(k \mid x_i)
    - \sum_i v_i \sum_k s_{ik} \ln s_{ik},

with equality where s belongs to :math:`\theta`. The first term is the log-likelihood of a table that has row
i once for each class of its interval, with the weight :math:`v_i s_{ik}`: any classifier with weights can be
fitted to it. Fits and new s in turn never lower L, nor L plus a log prior of :math:`\theta` that the fit
maximises as well. Where they stay as they are, both sides have the same gradient. So the fixed points are the
stationary points of the penalised likelihood of intervals. For an ordered probit there is one: L is concave,
since the normal density is logarithmically concave.

A model fitted by its evidence takes a row of total weight one for one observed label. By Jensen's inequality
its evidence is a bound, as in variational Bayes. The gradient at the mode is right; the curvature of L is
that of the first term *less* the variance of its gradient under s, which the fit does not know of. Posterior
variances are too small, as if all labels were known.

Held-out probabilities
----------------------
A classifier that interpolates its rows returns the s that it was given: every s is a fixed point, and EM
remains where it began. What is wanted there is not a maximum but the posterior distribution of the labels.
With the data D, and :math:`D_{-i}` all rows but i, Bayes' theorem gives

.. math:: P(y_i = k \mid D) \propto P(y_i = k \mid x_i, D_{-i}), \qquad k \in I_i,

the probability by a model that has *not seen the row*. The labels of the other rows in :math:`D_{-i}` are not
known either; their weighted copies stand for them. With s from held-out folds, a row cannot confirm its own
guess. A fixed point is then no maximum of a likelihood but a table that agrees with its own cross-validation.

First round
-----------
Without features, where :math:`p(k \mid x) = \pi_k`, the fixed point of

.. math:: \pi_k = \frac{1}{V + r}\Big(1 + \sum_i v_i
    \frac{\pi_k 1[k \in I_i]}{\sum_{j \in I_i} \pi_j}\Big), \qquad V = \sum_i v_i,

is the mode of a strictly concave log posterior, and unique. Without the 1, a row of each class, it has
Turnbull's (1976) self-consistent frequencies; with it, classes that occur only within intervals stay above
zero.

A fit to copies with these frequencies as s learns first of all that the classes of an interval are all alike
whatever x is, and unlearns it slowly: EM gains in a round only the share of the information that is not
missing. So in the first round the copies have but a small part of their weight. Known labels, where there are
any, say how classes depend on x, and the copies keep classes alive that no known label has.
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
