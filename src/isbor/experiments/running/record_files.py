"""Files of records: a CSV table, and JSON lines that another run can use."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from isbor.experiments.running.records import Record

__all__ = ["read_record_lines", "record_lines", "record_table"]

_TIMES = ("search", "fit", "predict", "total")
_NEEDED = "Give the file records.jsonl of another run."


def record_table(records: Sequence[Record]) -> str:
    """Return the records as CSV, one per line."""
    metrics = sorted({name for record in records for name in record.metrics})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["task", "model", "split", "status", "reason", "n_train", "n_test", *metrics, "vectors"]
        + [f"{name}_seconds" for name in _TIMES]
        + ["peak_megabytes", "parameters", "finished", "isbor", "commit", "threads"]
    )
    for record in records:
        parameters = "; ".join(f"{name}={value}" for name, value in record.parameters.items())
        writer.writerow(
            [record.task, record.model, record.split, record.status, record.reason]
            + [record.n_train or "", record.n_test or ""]
            + [record.metrics.get(name, "") for name in metrics]
            + ["" if record.vectors is None else record.vectors]
            + [f"{record.seconds[name]:.4f}" if name in record.seconds else "" for name in _TIMES]
            + [record.peak_memory, parameters, record.finished]
            + [record.versions.get("isbor"), record.commit, record.threads]
        )
    return text.getvalue()


def record_lines(records: Mapping[str, Record]) -> str:
    """Return the records by the keys of their jobs, one JSON object per line."""
    return "".join(
        f'{{"key": {json.dumps(key)}, "record": {record.to_json()}}}\n' for key, record in records.items()
    )


def read_record_lines(path: Path) -> Mapping[str, Record]:
    """Return the records in a file written by `record_lines`, by the keys of their jobs."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. {_NEEDED}")
    records = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                entry = json.loads(line)
                records[str(entry["key"])] = Record.from_json(json.dumps(entry["record"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"Line {number} of {str(path)!r} is not a record of an experiment ({error!r}). {_NEEDED}"
                ) from None
    return records
