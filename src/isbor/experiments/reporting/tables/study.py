"""The tables of a report."""

from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.difference_tables import (
    differences,
    friedman_of,
    mean_ranks,
    tallies,
    tests_of_first,
)
from isbor.experiments.reporting.tables.model_tables import by_quantity, by_task, unfinished
from isbor.experiments.reporting.tables.paper_table import beside_the_paper, is_of_the_paper
from isbor.experiments.reporting.tables.quantities import (
    FIT_SECONDS,
    LOG_LOSS,
    MAE,
    MEMORY,
    RPS,
    SECONDS,
    VECTORS,
)
from isbor.experiments.reporting.tables.table import Table

__all__ = ["TABLE_NAMES", "study_tables"]

_BY_TASK = {
    "log-loss": LOG_LOSS,
    "rps": RPS,
    "seconds": FIT_SECONDS,
    "seconds-with-search": SECONDS,
    "vectors": VECTORS,
    "memory": MEMORY,
}
TABLE_NAMES = (
    *("summary", "mae", *_BY_TASK),
    *("differences", "wilcoxon", "wilcoxon-by-data", "ranks", "paper", "unfinished"),
)
"""All tables that a report can have."""


def study_tables(results: Results) -> dict[str, Table]:
    """Return the tables of a report by file name; those without rows are left out."""
    experiment = results.experiment
    tables: dict[str, Table] = {}
    if len(experiment.tasks) == 1:
        tables["summary"] = by_quantity(results)
    else:
        tables["mae"] = by_task(results, MAE, show_all=True)
        tables |= {name: by_task(results, quantity) for name, quantity in _BY_TASK.items()}
    if len(experiment.distinct_models) > 1:
        if experiment.cross_validated:
            tables["differences"] = differences(results)
        else:
            tables["wilcoxon"] = tallies(results)
            tables["wilcoxon-by-data"] = tests_of_first(results)
        ranked = friedman_of(results)
        if ranked is not None:
            tables["ranks"] = mean_ranks(ranked, experiment)
    if all(is_of_the_paper(task) for task in experiment.tasks):
        tables["paper"] = beside_the_paper(results)
    if results.counts["timeout"] or results.counts["failed"]:
        tables["unfinished"] = unfinished(results)
    return {name: table for name, table in tables.items() if table.rows}
