"""Experiments: models compared on data sets, as resumable runs with tables, tests, figures and a report.

An `Experiment` describes models, tasks and splits; `run` computes its cells, each in a process of its own,
and keeps the records in a `Store`; `write_report` turns records into tables, figures and a page. The studies
of the paper are shipped descriptions (`load_study`). ``isbor reproduce`` and ``isbor compare`` are these
functions on the command line.
"""

from isbor.experiments.description import Cell, Experiment, Limits, Search
from isbor.experiments.models import CATALOGUE, Model
from isbor.experiments.reading import STUDIES, load_study
from isbor.experiments.records import Record
from isbor.experiments.report import write_report
from isbor.experiments.results import Results
from isbor.experiments.runner import run
from isbor.experiments.store import Store
from isbor.experiments.tasks import BenchmarkData, CrossValidation, Holdout, Saddle, TableFile, Task

__all__ = [
    "CATALOGUE",
    "STUDIES",
    "BenchmarkData",
    "Cell",
    "CrossValidation",
    "Experiment",
    "Holdout",
    "Limits",
    "Model",
    "Record",
    "Results",
    "Saddle",
    "Search",
    "Store",
    "TableFile",
    "Task",
    "load_study",
    "run",
    "write_report",
]
