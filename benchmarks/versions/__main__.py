"""Compare the present version of ISBOR with an earlier commit: seconds side by side, and errors beside them.

The earlier commit gets a virtual environment with the packages of the present one, once. The two versions fit
in turn, each in a process of its own, nothing else at the same time. Every fit is recorded at once: a
stopped run goes on where it was, and Ctrl-C prints what is known so far.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from benchmarks.report import progress
from benchmarks.versions.environment import commit_of, installed
from benchmarks.versions.problems import PROBLEMS
from benchmarks.versions.report import peer_table, version_table
from benchmarks.versions.running import Plan, run, source_digest
from isbor.experiments.reporting.provenance import dates, provenance
from isbor.experiments.reporting.tables.table import to_markdown

PEERS = {"HistGradientBoosting": "sklearn", "LightGBM": "lightgbm", "CatBoost": "catboost"}  # modules
FOLDER = Path(__file__).parents[2] / "build" / "versions"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    names = [*dict.fromkeys(problem.group for problem in PROBLEMS), *(problem.name for problem in PROBLEMS)]
    parser.add_argument("--base", default="41850e0", metavar="REV", help="the earlier commit")
    parser.add_argument(
        "--problems", nargs="+", choices=names, metavar="NAME", help=f"groups or problems: {', '.join(names)}"
    )
    parser.add_argument("--slow", action="store_true", help="with the problems that take minutes")
    parser.add_argument("--splits", type=int, default=3, help="splits of each problem (3)")
    parser.add_argument("--repeats", type=int, default=1, help="fits to each split (1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each fit (2)")
    parser.add_argument(
        "--errors",
        action="store_true",
        help="errors only: fits of the earlier commit and of peers are made once for all present versions",
    )
    parser.add_argument("--peers", action="store_true", help=f"with {', '.join(PEERS)}")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="environments and records (build/versions)"
    )
    options = parser.parse_args()
    missing = [name for name in PEERS.values() if options.peers and not importlib.util.find_spec(name)]
    if missing:
        parser.error(f"--peers needs {', '.join(missing)}: pip install -e '.[bench]'")
    wanted = options.problems or [problem.group for problem in PROBLEMS]
    try:
        base = commit_of(options.base)
    except ValueError as error:
        parser.error(str(error))
    plan = Plan(
        base,
        source_digest(),
        [
            problem
            for problem in PROBLEMS
            if problem.name in wanted or (problem.group in wanted and (options.slow or not problem.slow))
        ],
        list(PEERS) if options.peers else [],
        options.splits,
        options.repeats,
        options.threads,
        timed=not options.errors,
    )
    try:
        for problem in plan.problems:
            problem.check()
    except OSError as error:  # a table is not there
        parser.error(str(error))
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "records.jsonl"
    try:
        run(plan, {"before": installed(base, options.folder), "now": Path(sys.executable)}, file)
    except KeyboardInterrupt:
        progress("Stopped; the same command goes on.")
    print_report(plan, file)


def print_report(plan: Plan, file: Path) -> None:
    """Print what the records of a plan say."""
    known = plan.known(file)
    print(to_markdown(version_table(plan, known)))
    if plan.peers:
        print(to_markdown(peer_table(plan, known)))
    for record in known.values():
        if not record.ok:
            print(f"- {record.model} failed on {record.task}, split {record.split}: {record.reason}")
    for heading, text in provenance(list(known.values())):
        print(f"- {heading}: {text}")
    print(dates(known.values()))


if __name__ == "__main__":
    main()
