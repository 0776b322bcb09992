"""The predictive distribution of the latent score, and the noise of the latent response."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from isbor._core.types import FloatArray
from isbor.data.rows import Scaling

__all__ = ["Drift", "GaussianModel", "Latent", "LatentModel"]


@dataclass(frozen=True, slots=True)
class Drift:
    """How far class probabilities are drawn to the base rates."""

    share: FloatArray  # (n,) of the base rates
    base_rates: FloatArray  # (r,)


@dataclass(frozen=True, slots=True)
class Latent:
    """The latent score at n rows, a Gaussian for each, and how the response is cut.

    For an average of models, `parts` are the models, on a common scale. Their class probabilities are
    averaged; the Gaussian has the mean and the variance of the mixture of their scores.
    """

    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    noise_variance: FloatArray  # (n,)
    lapse: float = 0.0  # share of labels assumed to be drawn at random, ε
    # Thresholds of each row minus the common ones, (n, r-1), or (1, r-1) if they are the same for all rows.
    offsets: FloatArray | None = None
    parts: tuple["Latent", ...] = ()
    shares: tuple[float, ...] = ()  # weights of the parts
    # Far outside the training rows, class probabilities drift to the base rates.
    drift: "Drift | None" = None

    def thresholds(self, common: FloatArray) -> FloatArray:
        """Return the thresholds of each row, (n, r-1) or (1, r-1), given the common ones."""
        return common[None] if self.offsets is None else common + self.offsets

    def edges(self, common: FloatArray) -> FloatArray:
        """Return the thresholds of each row between -∞ and ∞, (n, r+1) or (1, r+1)."""
        ends = (0.0, 0.0), (-np.inf, np.inf)
        return np.pad(self.thresholds(common), ((0, 0), (1, 1)), constant_values=ends)

    def standardised_edges(self, common: FloatArray) -> FloatArray:
        """Return the edges minus the mean in units of the latent response's standard deviation, (n, r+1)."""
        return (self.edges(common) - self.mean[:, None]) / self.response_scale[:, None]

    def tempered(self, temperature: float) -> "Latent":
        """Return it with the standard deviations of score and noise multiplied by `temperature`.

        The models of an average remain as far apart as they are.
        """
        parts = tuple(part.tempered(temperature) for part in self.parts)
        within = self.variance
        if self.parts:
            within = np.average([part.variance for part in self.parts], axis=0, weights=self.shares)
        return replace(
            self,
            variance=self.variance + (temperature**2 - 1.0) * within,
            noise_variance=temperature**2 * self.noise_variance,
            parts=parts,
        )

    def without_lapses(self) -> "Latent":
        """Return it without labels that are drawn at random."""
        return replace(self, lapse=0.0, parts=tuple(part.without_lapses() for part in self.parts))

    def scaled(self, scale: float) -> "Latent":
        """Return the score of one model, with score, thresholds and noise multiplied by `scale`."""
        return replace(
            self,
            mean=scale * self.mean,
            variance=scale**2 * self.variance,
            noise_variance=scale**2 * self.noise_variance,
            offsets=None if self.offsets is None else scale * self.offsets,
        )

    @property
    def response_scale(self) -> FloatArray:
        """Standard deviation of the latent response, score plus noise."""
        return np.sqrt(self.noise_variance + self.variance)


class LatentModel(Protocol):
    """A fitted model of the latent score."""

    @property
    def scaling(self) -> Scaling:
        """How encoded rows are scaled."""

    @property
    def n_functions(self) -> int:
        """Number of functions (or kernel values) evaluated for one row."""

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows, (n, d)."""


class GaussianModel(LatentModel, Protocol):
    """A model whose score has slopes."""

    def slopes(self, scaled: FloatArray) -> FloatArray:
        """Return the slopes of the score along each scaled column at scaled rows, (n, d)."""
