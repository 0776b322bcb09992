"""Are the probabilities of `ISBOR()` right? A picture of the seven sets, from the committed records.

All test rows and thresholds of all splits are counted: what was predicted for y ≤ k, and how often it was so.
"""

import argparse
from pathlib import Path

import numpy as np

from isbor.experiments import Results
from isbor.experiments.reporting.figures.curves import CalibrationBins, calibration_figure

__all__ = ["reliability_bins"]


def reliability_bins(results: Results) -> dict[str, CalibrationBins]:
    """Return counts, and predicted and observed shares of y ≤ k, of the first model by data set."""
    found = {}
    model = results.experiment.models[0]
    for task in results.experiment.tasks:
        records = results.finished(task.name, model.name)
        if records:
            count, predicted, observed = np.sum([record.calibration for record in records], axis=0).T
            used = count > 0
            shares = predicted[used] / count[used], observed[used] / count[used]
            found[task.title] = CalibrationBins(count[used].astype(np.intp), *shares)
    return found


def main() -> None:
    from benchmarks.studies import PAPER
    from benchmarks.tables import known_records

    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("docs/reliability.png"), help="file to write")
    file = parser.parse_args().to
    figure = calibration_figure(reliability_bins(Results.of(PAPER, known_records())))
    figure.savefig(file, dpi=110)
    print(f"{file} is written.")


if __name__ == "__main__":
    main()
