"""Whether bands and probabilities can be trusted on a table: the report of simulations from a fitted model.

Labels are drawn from the probabilities of the fitted model, which are then the truth; the estimator is fitted
to them anew, and its bands and probabilities are compared with that truth. What is true of the table itself
may be rougher than the model, but its rows, classes and noise are these.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from isbor._core.types import BoolArray, FloatArray, LabelArray

__all__ = ["BandCheck", "BandPart", "Simulated"]

_LIKELY = (0.05, 0.95)  # probabilities outside are left out: hardly any band misses them
_FEW = 0.25  # share of the rows of which the model is least sure
_TOLERANCE = 0.07  # of the coverage


@dataclass(frozen=True, slots=True)
class Simulated:
    """A refitted estimator on rows whose class probabilities are known; arrays are of shape (n, r)."""

    truth: FloatArray
    predicted: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class BandPart:
    """How well some probabilities are found again."""

    name: str
    n_probabilities: int
    covered: float  # share of them in their bands
    width: float  # mean width of the bands
    error: float  # mean distance of the predicted ones

    @classmethod
    def of(cls, name: str, simulations: list[Simulated], chosen: BoolArray) -> Self:
        """Summarise the chosen probabilities, (n, r), as far as they are likely."""
        covered, width, error = [], [], []
        for simulated in simulations:
            p = simulated.truth
            own = chosen & (p > _LIKELY[0]) & (p < _LIKELY[1])
            covered.append(((simulated.low <= p) & (p <= simulated.high))[own])
            width.append((simulated.high - simulated.low)[own])
            error.append(np.abs(simulated.predicted - p)[own])
        count = sum(map(len, covered))
        means = [float(np.concatenate(some).mean()) if count else np.nan for some in (covered, width, error)]
        return cls(name, count, *means)


@dataclass(frozen=True, slots=True, repr=False)
class BandCheck:
    """How often bands contain the truth in simulations from a model; it prints as a verdict and a table."""

    coverage: float  # that the bands promise
    n_simulations: int
    parts: tuple[BandPart, ...]  # all rows, rows of which the model is sure and less sure, each class

    @classmethod
    def of(cls, simulations: list[Simulated], coverage: float, std: FloatArray, classes: LabelArray) -> Self:
        """Summarise simulations; `std`, (n,), is the standard deviation of the score of each row."""
        unsure = np.zeros_like(simulations[0].truth, dtype=np.bool_)
        unsure[std > np.quantile(std, 1.0 - _FEW)] = True
        everything = np.ones_like(unsure)
        parts = [BandPart.of("all rows", simulations, everything)]
        parts.append(BandPart.of("the surer three quarters", simulations, ~unsure))
        parts.append(BandPart.of("the least sure quarter", simulations, unsure))
        for k, name in enumerate(classes):
            own = np.zeros_like(unsure)
            own[:, k] = True
            parts.append(BandPart.of(f"class {name}", simulations, own))
        return cls(coverage, len(simulations), tuple(parts))

    @property
    def covered(self) -> float:
        """Share of the true probabilities in their bands."""
        return self.parts[0].covered

    def __str__(self) -> str:
        whole = self.parts[0]
        if not whole.n_probabilities:
            return "The model is sure of all classes: no probability is between 0.05 and 0.95."
        promise = f"{self.coverage:.0%}"
        lines = [
            f"Bands of {promise} contained {whole.covered:.0%} of the probabilities in {self.n_simulations} "
            f"simulations from this model; predicted probabilities were off by {whole.error:.3f} on average.",
            self._verdict,
            f"{'':32}{'in bands':>10}{'width':>8}{'error':>8}",
        ]
        for part in self.parts:
            if part.n_probabilities:
                lines.append(f"{part.name:32.32}{part.covered:>10.0%}{part.width:>8.3f}{part.error:>8.3f}")
            else:
                lines.append(f"{part.name:32.32}{'never between 0.05 and 0.95':>26}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _verdict(self) -> str:
        narrow = [
            part.name
            for part in self.parts[1:]
            if part.n_probabilities and part.covered < self.coverage - _TOLERANCE
        ]
        if self.covered < self.coverage - _TOLERANCE:
            return "These bands are too narrow for this table: pass a higher `coverage`, or more rows."
        if narrow:
            return f"These bands can be trusted on the whole, but are too narrow for {', '.join(narrow)}."
        if self.covered > self.coverage + _TOLERANCE:
            return "These bands can be trusted; they are wider than they need to be."
        return "These bands can be trusted: on the whole, where the model is least sure, and for each class."
