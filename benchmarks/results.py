"""A store of results that survives an interruption, and the tables made from it.

Every fit is one line of JSON, appended at once. Nothing is ever rewritten, a dropped result is a line too: so
two runs may write to one store, and a run that was stopped goes on where it was.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import number, print_table, seconds
from isbor._core.types import FloatArray

__all__ = [
    "MEASURES",
    "STORE",
    "Group",
    "Key",
    "Measures",
    "Paired",
    "Store",
    "mean_of",
    "paired",
    "print_groups",
    "print_paired",
]

STORE = Path(__file__).parent / ".results"
MEASURES = {"mae": "MAE", "rps": "RPS", "log_loss": "log loss"}  # field and heading; less is better

Measures: TypeAlias = dict[str, float]
Group: TypeAlias = Mapping[int, Measures]  # results of one model on one set, by split


@dataclass(frozen=True, slots=True)
class Key:
    """Which fit a result is of; `label` tells versions of a model apart."""

    protocol: str
    set: str
    model: str
    split: int = 0
    label: str = ""


class Store:
    """Results by key, in memory and in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "fits.jsonl"
        self._results: dict[Key, Measures] = {}
        for line in self._file.read_text().splitlines() if self._file.is_file() else ():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by an interruption: that fit is made again
            key = Key(**entry["key"])
            if entry["measures"] is None:
                self._results.pop(key, None)
            else:
                self._results[key] = entry["measures"]

    def __contains__(self, key: Key) -> bool:
        return key in self._results

    def __getitem__(self, key: Key) -> Measures:
        return self._results[key]

    def add(self, key: Key, measures: Measures) -> None:
        """Keep a result."""
        measures = {name: float(value) for name, value in measures.items()}
        self._append(key, measures)
        self._results[key] = measures

    def borrow(self, key: Key, measures: Measures) -> None:
        """Have a result from elsewhere for this run, unless the store has its own. Nothing is written."""
        self._results.setdefault(key, {name: float(value) for name, value in measures.items()})

    def drop(self, condition: Callable[[Key], bool]) -> None:
        """Forget the results whose keys meet the condition."""
        for key in [key for key in self._results if condition(key)]:
            self._append(key, None)
            del self._results[key]

    def group(self, protocol: str, set_name: str, model: str, label: str = "") -> dict[int, Measures]:
        """Return the results of a model on a set, by split."""
        wanted = (protocol, set_name, model, label)
        found = [key for key in self._results if (key.protocol, key.set, key.model, key.label) == wanted]
        return {key.split: self._results[key] for key in sorted(found, key=lambda key: key.split)}

    def save_forecast(self, key: Key, y_test: NDArray[np.generic], proba: FloatArray) -> None:
        """Keep the labels and the predicted probabilities of the test rows, for pictures."""
        self.directory.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(self._forecast_file(key), y_test=y_test, proba=proba)

    def forecast(self, key: Key) -> tuple[NDArray[np.generic], FloatArray] | None:
        """Return what `save_forecast` kept, None if nothing."""
        file = self._forecast_file(key)
        if not file.is_file():
            return None
        with np.load(file) as kept:
            return kept["y_test"], kept["proba"]

    def _forecast_file(self, key: Key) -> Path:
        parts = (key.protocol, key.set, key.model, f"split{key.split}", key.label)
        name = "_".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts if part)
        return self.directory / f"{name}.npz"

    def _append(self, key: Key, measures: Measures | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        # The newline in front ends a line that an interruption cut off.
        line = "\n" + json.dumps({"key": asdict(key), "measures": measures}) + "\n"
        with self._file.open("a") as file:
            file.write(line)


@dataclass(frozen=True, slots=True)
class Paired:
    """Mean difference of a measure, ours less theirs, over splits that both were fitted to."""

    mean: float
    error: float  # standard error of the mean, NaN for a single split
    n_splits: int

    @property
    def outcome(self) -> str:
        """Return what the difference says; less than one standard error says nothing."""
        if self.error != self.error:
            return "–"
        if abs(self.mean) <= self.error * (1 + 1e-9):  # of two splits, both are often the same number
            return "draw"
        return "win" if self.mean < 0 else "loss"

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {number(self.error)} {self.outcome}"


def paired(ours: Group, theirs: Group, measure: str) -> Paired | None:
    """Compare two models on their common splits; None if there are none with this measure."""
    differences = np.array(
        [ours[split][measure] - theirs[split][measure] for split in ours if split in theirs]
    )
    differences = differences[np.isfinite(differences)]
    n_splits = len(differences)
    if n_splits == 0:
        return None
    error = differences.std(ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.nan
    return Paired(float(differences.mean()), float(error), n_splits)


def mean_of(group: Group, measure: str) -> float:
    """Return the mean of a measure over the splits, NaN if there are none."""
    return float(np.mean([measures[measure] for measures in group.values()])) if group else np.nan


def print_groups(title: str, groups: Iterable[tuple[str, str, Group]]) -> None:
    """Print a row for each set, model and its results."""
    rows = []
    for set_name, model, group in groups:
        column = {field: np.array([result[field] for result in group.values()]) for field in _FIELDS}
        rows.append(
            [
                set_name,
                model,
                *(_mean_and_deviation(column[field], 4) for field in MEASURES),
                _mean_and_deviation(column["vectors"], 1),
                seconds(float(np.median(column["seconds"]))),
                seconds(float(np.median(column["cpu_seconds"]))),
                f"{column['rows'].max():.0f}",
                str(len(group)),
            ]
        )
    header = ["set", "model", *MEASURES.values(), "vectors", "seconds", "CPU seconds", "rows", "splits"]
    print_table(title, header, rows, n_text=2)


def print_paired(title: str, comparisons: Sequence[tuple[str, str, Mapping[str, Paired | None]]]) -> None:
    """Print the differences by measure, a row for each set and rival, then the outcomes of each rival."""
    header = ["set", "against", "splits", *MEASURES.values()]
    rows = []
    for set_name, rival, differences in comparisons:
        found = [difference for difference in differences.values() if difference is not None]
        n_splits = str(found[0].n_splits) if found else "0"
        cells = [str(differences.get(measure) or "–") for measure in MEASURES]
        rows.append([set_name, rival, n_splits, *cells])
    for rival in dict.fromkeys(rival for _, rival, _ in comparisons):
        of_rival = [differences for _, name, differences in comparisons if name == rival]
        counts = [_count([differences.get(measure) for differences in of_rival]) for measure in MEASURES]
        rows.append(["win/draw/loss", rival, "", *counts])
    print_table(title, header, rows, n_text=2)


_FIELDS = (*MEASURES, "vectors", "seconds", "cpu_seconds", "rows")


def _mean_and_deviation(values: FloatArray, digits: int) -> str:
    """Return mean ± standard deviation, which a single value does not have."""
    if np.isnan(values).any():
        return "–"
    deviation = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"


def _count(differences: Iterable[Paired | None]) -> str:
    outcomes = [difference.outcome for difference in differences if difference is not None]
    return "/".join(str(outcomes.count(outcome)) for outcome in ("win", "draw", "loss")) if outcomes else "–"
