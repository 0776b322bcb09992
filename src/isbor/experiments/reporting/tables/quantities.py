"""The quantities in tables: where a record has them, how they are shown, and which value is best."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isbor._core.types import FloatArray
from isbor.experiments.reporting.tables.table import mean_and_deviation, number, seconds
from isbor.experiments.running.records import Record

__all__ = [
    "ACCURACY",
    "AVERAGE_MAE",
    "FIT_SECONDS",
    "LOG_LOSS",
    "MAE",
    "MAE_DIGITS",
    "MEMORY",
    "RPS",
    "SECONDS",
    "SIZE",
    "VECTORS",
    "Quantity",
    "deviating",
]

MAE_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a record, and how to show it over splits."""

    name: str
    of: Callable[[Record], float | None]
    show: Callable[[FloatArray], str]
    centre: Callable[[FloatArray], np.floating[Any]] = np.mean  # by which the best is chosen
    lowest_is_best: bool = True


def deviating(digits: int) -> Callable[[FloatArray], str]:
    """Return a function that shows mean ± standard deviation."""
    return lambda values: mean_and_deviation(values, digits)


def _mean(digits: int) -> Callable[[FloatArray], str]:
    return lambda values: number(float(values.mean()), digits)


def _metric(name: str) -> Callable[[Record], float | None]:
    return lambda record: record.metrics.get(name)


def _duration(name: str, *parts: str) -> Quantity:
    """Return the median seconds of parts of a job; a median resists disturbances."""
    return Quantity(
        name,
        lambda record: _sum(record.seconds.get(part) for part in parts),
        lambda values: seconds(float(np.median(values))),
        np.median,
    )


def _sum(parts: Iterable[float | None]) -> float | None:
    """Return the sum, None if a part is unknown."""
    known = list(parts)
    return None if None in known else sum(part for part in known if part is not None)


def _functions(record: Record) -> float | None:
    """Return the number of functions that a model sums, whatever they are called."""
    return record.parameters.get("functions") if record.vectors is None else record.vectors


MAE = Quantity("Mean absolute error", _metric("mae"), deviating(MAE_DIGITS))
AVERAGE_MAE = Quantity("Mean absolute error, average over classes", _metric("amae"), deviating(MAE_DIGITS))
ACCURACY = Quantity("Accuracy", _metric("accuracy"), _mean(3), lowest_is_best=False)
LOG_LOSS = Quantity("Log loss of the probabilities", _metric("log_loss"), _mean(3))
RPS = Quantity("Ranked probability score", _metric("rps"), _mean(4))
FIT_SECONDS = _duration("Seconds of one fit (median), search not included", "fit")
SECONDS = _duration("Seconds of search and fit (median)", "search", "fit")
VECTORS = Quantity("Relevance or support vectors", lambda record: record.vectors, _mean(1))
SIZE = Quantity("Basis functions, support vectors, trees or shape functions", _functions, _mean(0))
MEMORY = Quantity("Peak memory in megabytes, libraries included", lambda record: record.peak_memory, _mean(0))
