"""The record of a job: one for each, finished or not."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["UNKNOWN_COMMIT", "Record", "Status"]

UNKNOWN_COMMIT = "unknown"
"""The commit of records from before commits were recorded."""
Status = Literal["ok", "timeout", "failed"]


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one model on one split of one task.

    See Also
    --------
    Job : What it is the result of.
    Store : Keeps records.
    Results : Records by task and model.

    Examples
    --------
    >>> from isbor.experiments import Record
    >>> record = Record("saddle", "linear", split=0, status="timeout", reason="The time was up.")
    >>> record.metrics, record.vectors
    ({}, None)
    """

    task: str
    model: str
    split: int
    status: Status
    reason: str = ""  # why it is not ok
    n_train: int = 0
    n_test: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    vectors: int | None = None  # relevance or support vectors; None: the model has none
    parameters: Mapping[str, Any] = field(default_factory=dict)  # found by the search or in the fit
    calibration: tuple[tuple[float, float, float], ...] = ()  # per bin: count, sums of predicted and observed
    seconds: Mapping[str, float] = field(default_factory=dict)  # search, fit, predict, total
    peak_memory: float | None = None  # megabytes
    limits: Mapping[str, float | None] = field(default_factory=dict)  # seconds and gigabytes; None: no limit
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = UNKNOWN_COMMIT  # of isbor's source; None: not run from a checkout
    machine: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None  # None: unknown
    finished: str = ""  # ISO date and time

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status == "ok"

    @property
    def limits_in_words(self) -> str:
        """The limits of the job in words."""
        seconds, memory = self.limits.get("seconds"), self.limits.get("memory")
        if seconds is None:
            time = "any time"
        else:
            time = f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds:g} s"
        return f"{time} and {'any memory' if memory is None else f'{memory:g} GB'}"

    def to_json(self) -> str:
        """Return the record as JSON; numbers that are not finite become null."""
        return json.dumps(_finite(asdict(self)), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the record that `to_json` wrote."""
        facts = json.loads(text)
        facts["calibration"] = tuple(map(tuple, facts["calibration"]))
        return cls(**facts)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
