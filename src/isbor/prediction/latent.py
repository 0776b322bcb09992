"""The latent score at some rows: a Gaussian, with the noise of the response on top of it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isbor._core.types import FloatArray

__all__ = ["Latent", "LatentModel"]


@dataclass(frozen=True, slots=True)
class Latent:
    """The latent score at some rows, a Gaussian, and the noise of the response."""

    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    noise_variance: FloatArray  # (n,)
    lapse: float = 0.0  # share of labels that are drawn at random, ε

    @property
    def response_scale(self) -> FloatArray:
        """Standard deviation of the latent response, score and noise together."""
        return np.sqrt(self.noise_variance + self.variance)


class LatentModel(Protocol):
    """A fitted latent score as a function of a row."""

    @property
    def n_functions(self) -> int:
        """How many numbers a row's score takes to compute."""

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows, (n, d)."""
