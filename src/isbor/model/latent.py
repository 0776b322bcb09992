"""The predictive distribution of the latent score, and the noise of the latent response."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isbor._core.types import FloatArray

__all__ = ["Latent", "LatentModel"]


@dataclass(frozen=True, slots=True)
class Latent:
    """The latent score at n rows, a Gaussian for each, and the noise variance of the response."""

    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    noise_variance: FloatArray  # (n,)
    lapse: float = 0.0  # share of labels assumed to be drawn at random, ε
    offsets: FloatArray | None = None  # (n, r-1) thresholds of each row minus the common ones, if they vary

    def thresholds(self, common: FloatArray) -> FloatArray:
        """Return the thresholds of each row, (n, r-1) or (1, r-1), given the common ones."""
        return common[None] if self.offsets is None else common + self.offsets

    def edges(self, common: FloatArray) -> FloatArray:
        """Return the thresholds of each row between -∞ and ∞, (n, r+1) or (1, r+1)."""
        return np.pad(self.thresholds(common), ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))

    @property
    def response_scale(self) -> FloatArray:
        """Standard deviation of the latent response, score plus noise."""
        return np.sqrt(self.noise_variance + self.variance)


class LatentModel(Protocol):
    """A fitted model of the latent score."""

    @property
    def n_functions(self) -> int:
        """Number of functions (or kernel values) evaluated for one row."""

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows, (n, d)."""
