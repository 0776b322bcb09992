"""Are the probabilities of `ISBOR()` right? A picture of the seven sets, from the committed records.

All test rows and thresholds of all splits are counted: what was predicted for y ≤ k, and how often it was so.
"""

import argparse
from pathlib import Path

from isbor._core.types import FloatArray
from isbor.experiments import Results
from isbor.experiments.reporting.figures.curves import calibration_figure

__all__ = ["reliability_sums"]


def reliability_sums(results: Results) -> dict[str, FloatArray]:
    """Return counts, and sums of predicted and observed y ≤ k, of the first model by data set and bin."""
    model = results.experiment.models[0]
    found = {task.title: results.calibration([task.name], model.name) for task in results.experiment.tasks}
    return {title: sums for title, sums in found.items() if sums is not None}


def main() -> None:
    from benchmarks.studies import PAPER
    from benchmarks.tables import known_records

    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("docs/reliability.png"), help="file to write")
    file = parser.parse_args().to
    figure = calibration_figure(reliability_sums(Results.of(PAPER, known_records())))
    figure.savefig(file, dpi=110)
    print(f"{file} is written.")


if __name__ == "__main__":
    main()
