"""Synthetic data sets: the paper's saddle, and the balance scale."""

from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import FloatArray, IntArray

__all__ = ["SADDLE_THRESHOLDS", "make_balance_scale", "make_saddle", "saddle_labels"]

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

SADDLE_THRESHOLDS: tuple[float, ...] = (-60.0, -9.0, 15.0, 60.0)
"""Thresholds at which `make_saddle` cuts the latent score into five classes."""


@overload
def make_saddle(
    n_samples: int = ...,
    *,
    noise: float = ...,
    random_state: RandomState = ...,
    return_score: Literal[False] = ...,
) -> tuple[FloatArray, IntArray]: ...


@overload
def make_saddle(
    n_samples: int = ..., *, noise: float = ..., random_state: RandomState = ..., return_score: Literal[True]
) -> tuple[FloatArray, IntArray, FloatArray]: ...


def make_saddle(
    n_samples: int = 21_000,
    *,
    noise: float = 0.5,
    random_state: RandomState = None,
    return_score: bool = False,
) -> tuple[FloatArray, IntArray] | tuple[FloatArray, IntArray, FloatArray]:
    """Draw the synthetic set of the paper: five classes cut from a saddle over a square.

    Parameters
    ----------
    n_samples : int, default=21_000
        Number of rows. The default is that of the paper.
    noise : float, default=0.5
        Standard deviation of the noise added to the latent score before it is cut. With 0.5, predictions from
        the noise-free score have a mean absolute error of about 0.0072; no model can do better on average.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed or random number generator. A generator is advanced by the call.
    return_score : bool, default=False
        If True, return the noise-free latent score as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points, uniformly distributed on [0, 10]².
    y : ndarray of int of shape (n_samples,)
        Labels 1 to 5.
    score : ndarray of shape (n_samples,)
        Noise-free latent score; only if ``return_score=True``.

    Examples
    --------
    >>> X, y, score = make_saddle(1000, random_state=0, return_score=True)
    >>> X.shape, y.min(), y.max()
    ((1000, 2), np.int64(1), np.int64(5))
    >>> np.abs(y - saddle_labels(score)).mean() < 0.03  # error due to noise alone
    np.True_
    """
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; at least 1 is needed.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise is {noise}; a finite standard deviation of at least 0 is needed.")
    rng = _generator(random_state)
    X = rng.uniform(0.0, 10.0, size=(n_samples, 2))
    score = 10.0 * (X[:, 0] - 5.0) * (X[:, 1] - 5.0)
    y = saddle_labels(score + noise * rng.standard_normal(n_samples))
    return (X, y, score) if return_score else (X, y)


def saddle_labels(score: ArrayLike) -> IntArray:
    """Return the labels 1 to 5 of latent scores, as in `make_saddle`.

    For noise-free scores these are the best possible predictions.

    Parameters
    ----------
    score : array-like of float
        Latent scores.

    Returns
    -------
    ndarray of int, of the shape of `score`
        1 plus the number of `SADDLE_THRESHOLDS` below each score.

    Examples
    --------
    >>> saddle_labels([-100, -60, 0, 15.1, 250])
    array([1, 1, 3, 4, 5])
    """
    return 1 + np.searchsorted(SADDLE_THRESHOLDS, np.asarray(score, dtype=np.float64), side="left")


def _generator(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    """Return a given generator, or a new one from a seed."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def make_balance_scale() -> tuple[FloatArray, IntArray]:
    """Return the Balance Scale set: the side to which a loaded scale tips.

    Returns
    -------
    X : ndarray of shape (625, 4)
        Left weight, left distance, right weight and right distance: the grid {1, …, 5}⁴ in lexicographic
        order.
    y : ndarray of int of shape (625,)
        1 if the left side is heavier (288 rows), 2 if the scale is balanced (49), 3 if the right side is
        heavier (288).

    Examples
    --------
    >>> X, y = make_balance_scale()
    >>> np.bincount(y)[1:]
    array([288,  49, 288])
    """
    X = 1.0 + np.indices((5, 5, 5, 5), dtype=np.float64).reshape(4, -1).T
    tilt = X[:, 2] * X[:, 3] - X[:, 0] * X[:, 1]
    return X, (2 + np.sign(tilt)).astype(np.intp)
