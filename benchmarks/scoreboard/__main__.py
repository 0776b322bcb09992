"""The scoreboard so far: tables of all records that a run has made, finished or not, and diagrams of ranks.

Run it with ``isbor reproduce benchmarks.scoreboard:SCOREBOARD``; what is given there as ``--models``,
``--datasets`` and ``--splits`` is given here as well.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.scoreboard.pictures import draw_ranks
from benchmarks.scoreboard.study import SCOREBOARD
from benchmarks.scoreboard.tables import of_models_that_ran, of_sets, scoreboard_tables
from benchmarks.scoreboard.tasks import GROUPS
from isbor.experiments import Experiment, Results, Store
from isbor.experiments.reporting.tables.table import to_markdown

__all__ = ["main"]

_NO_SETS = "There are no such sets.\n"
_NO_RECORDS = "Records of ISBOR() and of another model on all sets are still to be made.\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoreboard", description=__doc__)
    parser.add_argument("--of", type=Path, default=Path("isbor-scoreboard"), help="directory of the run")
    parser.add_argument("--models", type=_names, help="only these, separated by commas")
    parser.add_argument("--datasets", type=_names, help="only these, separated by commas")
    parser.add_argument("--splits", type=int, help="only the first splits, this many")
    given = parser.parse_args(arguments)
    experiment = SCOREBOARD.only(given.models, given.datasets)
    if given.splits is not None:
        experiment = replace(experiment, splits=given.splits)
    results = _results(experiment, given.of / "results.sqlite")
    for group in GROUPS:
        print(f"# {group.title}\n")
        known = [task for task in group.tasks if task in experiment.tasks]
        part = of_sets(results, known)
        ran = None if part is None else of_models_that_ran(part)
        if part is None or ran is None:
            print(_NO_RECORDS if known else _NO_SETS)
            continue
        for table in scoreboard_tables(part).values():
            print(to_markdown(table))
        for path in draw_ranks(ran, given.of / "figures" / group.name):
            print(f"{path} is drawn.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _results(experiment: Experiment, path: Path) -> Results:
    if not path.is_file():
        raise SystemExit(
            f"There is no file {str(path)!r}: run `isbor reproduce benchmarks.scoreboard:SCOREBOARD` first, "
            "or name the directory of its results with --of."
        )
    with Store(path) as store:
        return Results.of(experiment, store.records(job.key for job in experiment.jobs()))


if __name__ == "__main__":
    main()
