"""Experiments: models compared on data sets, as resumable runs with tables, tests, figures and a report.

An `Experiment` describes models, tasks and splits; `run` runs its jobs, each in its own process, and keeps
the records in a `Store`; `write_report` turns records into tables, figures and a page. The studies of the
paper come with the package (`load_study`). ``isbor reproduce`` and ``isbor compare`` call these functions.
"""

from isbor.experiments.description.experiment import Experiment, Job, Limits, Search
from isbor.experiments.description.models import CATALOGUE, Model
from isbor.experiments.description.tasks import (
    BenchmarkData,
    CrossValidation,
    Holdout,
    ImportedData,
    Saddle,
    Share,
    TableFile,
    Task,
)
from isbor.experiments.description.toml_files import STUDIES, load_study
from isbor.experiments.reporting.report import write_report
from isbor.experiments.reporting.results import Results
from isbor.experiments.running.records import Record
from isbor.experiments.running.runner import run
from isbor.experiments.running.store import Store

__all__ = [
    "CATALOGUE",
    "STUDIES",
    "BenchmarkData",
    "CrossValidation",
    "Experiment",
    "Holdout",
    "ImportedData",
    "Job",
    "Limits",
    "Model",
    "Record",
    "Results",
    "Saddle",
    "Search",
    "Share",
    "Store",
    "TableFile",
    "Task",
    "load_study",
    "run",
    "write_report",
]
