"""Our results beside the paper's."""

from collections.abc import Mapping
from dataclasses import replace

from isbor.experiments.description.models import Model
from isbor.experiments.description.tasks import BenchmarkData, Holdout, Task
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.model_tables import show_values
from isbor.experiments.reporting.tables.paper import (
    PAPER_MAE,
    PAPER_ROWS,
    PAPER_SECONDS,
    PAPER_TALLIES,
    PAPER_VECTORS,
)
from isbor.experiments.reporting.tables.quantities import FIT_SECONDS, MAE, VECTORS, Quantity, deviating
from isbor.experiments.reporting.tables.table import DASH, Entry, Table

__all__ = ["beside_the_paper", "is_of_the_paper"]

_OURS = {  # models of ours for one of the paper's
    "isbor-cv": ("isbor-cv", "isbor-evidence", "isbor"),
    "isvor": ("isvor-adjacent", "isvor"),
}
_PUBLISHED: Mapping[str, tuple[Mapping[str, Mapping[str, object]], Quantity]] = {
    "MAE": (PAPER_MAE, replace(MAE, show=deviating(2))),
    "vectors": (PAPER_VECTORS, VECTORS),
    "seconds": (PAPER_SECONDS, FIT_SECONDS),
}


def is_of_the_paper(task: Task) -> bool:
    """Return whether the paper has results on this task."""
    return (
        isinstance(task.source, BenchmarkData)
        and task.source.name == task.name
        and isinstance(task.scheme, Holdout)
    )


def beside_the_paper(results: Results) -> Table:
    """Return our errors, vectors and seconds under the paper's."""
    experiment = results.experiment
    by_name = {model.name: model for model in experiment.models}
    rows: list[tuple[Entry, ...]] = []
    for what, (published, quantity) in _PUBLISHED.items():
        for name, values in published.items():
            present = [by_name[one] for one in _OURS.get(name, (name,)) if one in by_name]
            if not present:
                continue
            system = name.removesuffix("-cv").upper()
            printed = (_printed(values.get(task.name)) for task in experiment.tasks)
            rows.append((Entry(what), Entry(f"{system}, paper"), *printed))
            rows += [
                (Entry(what), Entry(model.title), *_own_entries(results, model, quantity))
                for model in present
            ]
    return Table(
        "Beside the paper",
        ("", "", *(task.title for task in experiment.tasks)),
        tuple(rows),
        (
            "The paper's seconds are from another machine (16 cores at 2 GHz) and MATLAB and C programs; "
            "ours are for one fit without the search, on one thread.",
            "Training rows here, and in the paper: "
            + ", ".join(
                f"{task.title} {_rows(task)} and {PAPER_ROWS[task.name]:,}" for task in experiment.tasks
            )
            + f". The paper has 20 splits; here there are {experiment.splits}, or the number in brackets.",
            "The paper's wins, draws and losses: "
            + ", ".join(
                f"{name.removesuffix('-cv').upper()} {tally.wins}/{tally.draws}/{tally.losses}"
                for name, tally in PAPER_TALLIES.items()
            )
            + ".",
        ),
        n_text=2,
    )


def _own_entries(results: Results, model: Model, quantity: Quantity) -> list[Entry]:
    """Return a model's values on each task."""
    found = [results.by_split(task.name, model.name, quantity.of) for task in results.experiment.tasks]
    return [Entry(show_values(values, quantity, results.experiment.splits)) for values in found]


def _rows(task: Task) -> str:
    assert isinstance(task.scheme, Holdout)
    return f"{task.scheme.train:,}"


def _printed(value: object) -> Entry:
    if isinstance(value, tuple):
        return Entry(f"{value[0]:.2f} ± {value[1]:.2f}")
    return Entry(DASH if value is None else f"{value:g}")
