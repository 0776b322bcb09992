"""The tables in the documents, printed from the records in docs/results/records.jsonl.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, and is written anew by this command.
Records of a new run are taken over by ``--add isbor-comparison-70-30/records.jsonl``.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks import studies
from benchmarks.reliability import reliability_sums
from benchmarks.scoreboard.tables import of_sets, tables_for
from benchmarks.scoreboard.tasks import GROUPS, Group
from isbor.experiments import Record, Results, load_study
from isbor.experiments.reporting.provenance import dates, provenance
from isbor.experiments.reporting.tables.difference_tables import against_first
from isbor.experiments.reporting.tables.model_tables import by_quantity, by_task, show_values
from isbor.experiments.reporting.tables.quantities import (
    FIT_SECONDS,
    LOG_LOSS,
    MAE,
    RPS,
    VECTORS,
    deviating,
)
from isbor.experiments.reporting.tables.study import study_tables
from isbor.experiments.reporting.tables.table import DASH, Entry, Table, number, to_markdown
from isbor.experiments.running.record_files import read_record_lines, record_lines

__all__ = ["DOCUMENTS", "TABLES", "known_records", "rewritten"]

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = (
    DOCS.parent / "README.md",
    *(DOCS / name for name in ("comparison.md", "reproduction.md", "scoreboard.md")),
)
RECORDS = DOCS / "results" / "records.jsonl"
Make: TypeAlias = Callable[[Results], Table | None]  # None: there is too little for such a table
_PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_ERRORS = {
    head: replace(quantity, show=deviating(4))
    for head, quantity in (("MAE", MAE), ("RPS", RPS), ("log loss", LOG_LOSS))
}
_KEPT = {"isbor": "… functions", "isbor-evidence": "… relevance vectors"}
_COLUMNS = {**_ERRORS, "vectors": replace(VECTORS, show=deviating(1)), "seconds": FIT_SECONDS}


def known_records() -> dict[str, Record]:
    """Return all records that are committed, by key."""
    return dict(read_record_lines(RECORDS))


def rewritten(text: str, known: Mapping[str, Record]) -> str:
    """Return a document with its tables as the records give them."""

    def print_table(place: re.Match[str]) -> str:
        start, name, end = place.groups()
        if name not in TABLES:
            raise ValueError(f"There is no table {name!r}; there are {', '.join(TABLES)}.")
        study, models, make = TABLES[name]
        results = Results.of(load_study(study).only(models), known)
        content = f"Not yet rerun with the present version: `isbor reproduce {study}`.\n"
        table = make(results) if results.all_records else None
        if table is not None:
            notes = (*table.notes, _made_by(results.all_records))
            content = to_markdown(replace(table, title="", notes=notes))
        return f"{start}\n{content}\n{end}"

    return _PLACE.sub(print_table, text)


def headline(results: Results) -> Table:
    """Return MAE and log loss of all models on all sets, and how many functions or rows ours keep."""
    experiment = results.experiment
    marks = [[entry.mark for entry in row[1:]] for row in by_task(results, MAE, show_all=True).rows]
    sizes = {task.name: 0 for task in experiment.tasks}
    for record in results.all_records:
        sizes[record.task] = max(sizes[record.task], record.n_train)
    rows = [(Entry("training rows"), *(Entry(f"{size:,}") for size in sizes.values()))]
    for model, of_model in zip(experiment.models, marks, strict=True):
        errors, vectors = [], []
        for task, mark in zip(experiment.tasks, of_model, strict=True):
            mae, loss, kept = (
                results.by_split(task.name, model.name, quantity.of) for quantity in (MAE, LOG_LOSS, VECTORS)
            )
            fewer = f" [{len(mae)}]" if 0 < len(mae) < experiment.splits else ""
            errors.append(Entry(_mean(mae, 3) + (f" ({_mean(loss, 3)})" if loss else "") + fewer, mark))
            vectors.append(Entry(_mean(kept, 0)))
        rows.append((Entry(model.title), *errors))
        if model.name in _KEPT:
            rows.append((Entry(_KEPT[model.name]), *vectors))
    note = (
        f"Means over {experiment.splits} random splits, or as many as stand in square brackets: MAE, and in "
        "brackets the log loss of models with probabilities. Best MAE in bold, second best in italics, on "
        f"the splits that all have. {DASH}: not run yet."
    )
    return Table("", ("", *(task.title for task in experiment.tasks)), tuple(rows), (note,))


def all_results(results: Results) -> Table:
    """Return a row for each set and model."""
    rows = []
    for task in results.experiment.tasks:
        for model in results.experiment.models:
            found = results.finished(task.name, model.name)
            if found:
                entries = (
                    show_values(results.by_split(task.name, model.name, quantity.of), quantity)
                    for quantity in _COLUMNS.values()
                )
                rows_and_splits = f"{max(record.n_train for record in found):,}", str(len(found))
                rows.append(tuple(map(Entry, (task.title, model.title, *entries, *rows_and_splits))))
    return Table(
        "",
        ("data", "model", *_COLUMNS, "rows", "splits"),
        tuple(rows),
        ("Mean ± standard deviation over the splits; seconds of one fit without its search, the median.",),
        n_text=2,
    )


def reliability(results: Results) -> Table:
    """Return how far predicted cumulative probabilities are from observed shares."""
    rows = []
    for title, sums in reliability_sums(results).items():
        count, predicted, observed = sums.T
        error = np.abs(predicted - observed).sum() / count.sum()
        rows.append((Entry(title), Entry(f"{count.sum():,.0f}"), Entry(number(float(error), 4))))
    header = ("data", "test rows × thresholds, all splits", "mean |predicted − observed|")
    return Table("", header, tuple(rows), ("Ten bins of equal width, weighted by their counts.",))


def _of_study(name: str) -> Make:
    return lambda results: study_tables(results).get(name)


def _of_group(group: Group, make: Make) -> Make:
    """Return the function for the results on a group of the scoreboard's sets."""

    def make_of_group(results: Results) -> Table | None:
        part = of_sets(results, group.tasks)
        return None if part is None else make(part)

    return make_of_group


_PAPER = "benchmarks.studies:PAPER"
_SHOWN = [model.name for model in studies.PAPER.models if model != studies.FEW]
TABLES: dict[str, tuple[str, Sequence[str] | None, Make]] = {
    "headline": (_PAPER, _SHOWN, headline),
    "headline-70-30": ("benchmarks.studies:SEVENTY", _SHOWN, headline),
    "reliability": (_PAPER, ["isbor"], reliability),
    "saddle": ("benchmarks.studies:SADDLE", None, by_quantity),
    **{
        name: (study, None, make)
        for study, title in (
            (_PAPER, "comparison-paper"),
            ("benchmarks.studies:SEVENTY", "comparison-70-30"),
            ("benchmarks.studies:OTHER_SETS", "other-sets"),
            ("benchmarks.studies:SYSTEMS", "systems"),
        )
        for name, make in (
            (title, all_results),
            (f"{title}-differences", partial(against_first, quantities=_ERRORS)),
        )
    },
    "study-differences": ("benchmarks", None, partial(against_first, quantities=_ERRORS)),
    **{
        f"study-{name}": ("benchmarks", None, _of_study(name))
        for name in (
            *("mae", "log-loss", "seconds-with-search", "vectors"),
            *("wilcoxon", "wilcoxon-by-data", "ranks", "paper", "unfinished"),
        )
    },
    **{
        f"scoreboard-{group.name}-{name}": (
            "benchmarks.scoreboard:SCOREBOARD",
            None,
            _of_group(group, make),
        )
        for group in GROUPS
        for name, make in tables_for().items()
    },
}
"""By name: the study that a table is of, as `isbor reproduce` takes it, models, and how the table is made."""


def _mean(by_split: Mapping[int, float], digits: int) -> str:
    return number(float(np.mean(list(by_split.values()))), digits) if by_split else DASH


def _made_by(records: Sequence[Record]) -> str:
    """Return what made the records: code, machine and days."""
    facts = provenance(records)
    parts = ("; ".join(text for heading, text in facts if heading == part) for part in ("code", "machine"))
    text = "Made by {}. Machine: {}. {}".format(*parts, dates(records)).strip()
    return re.sub(r"\b([0-9a-f]{10})[0-9a-f]{30}\b", r"\1", text)  # as much of a commit as tells it apart


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument(
        "--add", type=Path, metavar="FILE", help="records of a run, to be kept in docs/results"
    )
    file = parser.parse_args().add
    known = known_records()
    if file is not None:
        known |= read_record_lines(file)
        RECORDS.write_text(record_lines(dict(sorted(known.items()))))
    for document in DOCUMENTS:
        document.write_text(rewritten(document.read_text(), known))


if __name__ == "__main__":
    main()
