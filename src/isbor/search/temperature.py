"""Whether predictions should be more or less sure: the temperature, by held-out labels.

The standard deviations of score and noise are multiplied by a temperature (`isbor.prediction.probabilities`)
if the labels held out in the comparison of families are clearly more probable with it: by two standard errors
of the mean log probability. The bound is high because the models compared have seen fewer rows than the final
one and leave more to the noise. In practice, only labels with hardly any noise ask for a temperature.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isbor.search.validation import Validation, compare

__all__ = ["Temperature", "choose_temperature"]

_TEMPERATURES = tuple(float(t) for t in 2.0 ** (np.arange(-4, 3) / 4.0) if t != 1.0)
_CLEARLY_BETTER = 2.0  # standard errors


@dataclass(frozen=True, slots=True)
class Temperature:
    """A factor of the standard deviations of score and noise, and what held-out labels gain by it."""

    value: float = 1.0
    gain: float = 0.0  # in the mean log probability of a held-out label, in nats
    standard_error: float = 0.0  # of the gain

    def __str__(self) -> str:
        if self.value == 1.0:
            return (
                "Predictions are as sure as the model is: on held-out rows, nothing else is clearly better."
            )
        surer = "surer" if self.value < 1.0 else "less sure"
        return (
            f"Predictions are {surer} (temperature {self.value:.2f}): on held-out rows, this raises "
            f"the log score by {self.gain:.4f} (std. error {self.standard_error:.4f})."
        )


def choose_temperature(validations: Sequence[Validation], limit: float = _CLEARLY_BETTER) -> Temperature:
    """Return the best temperature if it is better than 1 by `limit` standard errors.

    `validations` are of the selected model.
    """
    best = Temperature()
    for value in _TEMPERATURES:
        gain, error = compare([validation.tempered(value) for validation in validations], validations)
        if gain > best.gain:
            best = Temperature(value, gain, error)
    return best if best.gain > limit * best.standard_error else Temperature()
