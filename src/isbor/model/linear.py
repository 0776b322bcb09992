"""A latent score that is a linear function of the columns."""

from dataclasses import dataclass

import numpy as np

from isbor._core.types import FloatArray
from isbor.data.rows import Scaling
from isbor.model.latent import Latent

__all__ = ["LinearModel"]


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear function of the scaled columns, without uncertainty."""

    scaling: Scaling
    weights: FloatArray  # (d,)
    lapse: float

    @property
    def n_functions(self) -> int:
        """Number of columns."""
        return len(self.weights)

    def latent(self, X: FloatArray) -> Latent:
        """Return the latent score at encoded rows."""
        mean = self.scaling(X) @ self.weights
        return Latent(mean, np.zeros(len(X)), np.ones(len(X)), self.lapse)

    def slopes(self, scaled: FloatArray) -> FloatArray:
        """Return the slopes of the score along each scaled column at scaled rows, (n, d)."""
        return np.broadcast_to(self.weights, scaled.shape)
