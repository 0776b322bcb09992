"""Reliability of the probabilities of `ISBOR()`: one picture for the sets of the paper.

Drawn from the forecasts that `python -m benchmarks.comparison` has stored: the test rows of the first split.
"""

import argparse
from pathlib import Path

import matplotlib

from benchmarks.comparison import JUDGED_ON_PAPER
from benchmarks.protocol import MODELS, SETS
from benchmarks.report import print_table, progress
from benchmarks.results import STORE, Key, Store
from isbor.plots import CalibrationDisplay

matplotlib.use("Agg")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE, help="directory of the results")
    parser.add_argument("--to", type=Path, default=Path("reliability.png"), help="file to write")
    options = parser.parse_args()

    import matplotlib.pyplot as plt

    store = Store(options.store)
    forecasts = {}
    for name in SETS:
        protocol = "paper" if name in JUDGED_ON_PAPER else "70/30"
        forecast = store.forecast(Key(protocol, name, MODELS["isbor"].name))
        if forecast is None:
            progress(f"{name} is left out: no forecast is stored. Run python -m benchmarks.comparison first.")
        else:
            forecasts[name] = forecast
    if not forecasts:
        parser.exit(1, f"Nothing is stored in {options.store}.\n")
    figure, axes = plt.subplots(2, 4, figsize=(18, 10), layout="constrained")
    rows = []
    for ax, (name, (y, proba)) in zip(axes.flat, forecasts.items(), strict=False):
        display = CalibrationDisplay.from_predictions(y, proba, thresholds="each", ax=ax)
        ax.set_title(f"{name}: {len(y)} test rows, error {display.calibration_error:.3f}")
        rows.append([name, str(len(y)), f"{display.calibration_error:.4f}"])
    for ax in axes.flat[len(forecasts) :]:
        ax.set_axis_off()
    figure.savefig(options.to, dpi=80)
    print_table("Calibration of cumulative probabilities", ["set", "test rows", "mean absolute error"], rows)
    print(f"{options.to} is written.")


if __name__ == "__main__":
    main()
