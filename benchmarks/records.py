"""Fits of ISBOR to the paper's splits that `isbor reproduce benchmarks` has made already.

Rows, splits and parameters are the same there as under the protocol "paper". Its fits have one thread, so
their seconds are about those of the CPU.
"""

from pathlib import Path

import numpy as np

from benchmarks.protocol import MODELS, TRAINING_ROWS
from benchmarks.results import MEASURES, Key, Store
from isbor.experiments.running.record_files import read_record_lines

__all__ = ["borrow_records"]

_KEYS = {"isbor": "isbor", "isbor-evidence": "isbor-rbf"}  # of the study's models, here


def borrow_records(store: Store, file: Path, label: str) -> None:
    """Let the store have them while this run lasts."""
    for record in read_record_lines(file).values():
        if not (record.ok and record.model in _KEYS and record.n_train == TRAINING_ROWS.get(record.task)):
            continue
        key = Key("paper", record.task, MODELS[_KEYS[record.model]].name, record.split, label)
        measures = {measure: record.metrics[measure] for measure in MEASURES}
        measures["vectors"] = np.nan if record.vectors is None else record.vectors
        measures["seconds"] = measures["cpu_seconds"] = record.seconds["fit"]
        store.borrow(key, measures | {"rows": record.n_train})
