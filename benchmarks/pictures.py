"""The pictures of docs/notebooks.md: a fitted model as a notebook shows it, and displays on held-out rows.

The data are those of the README's example, 442 diabetes patients with four grades, or one of the seven sets,
of which at most 1,200 rows are fitted. The first picture needs a browser of the Chromium family; without one,
the others are drawn.
"""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from isbor import ISBOR
from isbor.datasets import load_benchmark
from isbor.meta import PredictionSetClassifier
from isbor.plots import (
    DiscriminationDisplay,
    OrdinalConfusionDisplay,
    PredictionSetDisplay,
    TraceDisplay,
)

__all__ = ["main"]

_MOST_ROWS = 1200
_GRADES = ["mild", "moderate", "serious", "severe"]
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PAGE = "<!doctype html><meta charset='utf-8'><body style='font-family:sans-serif;font-size:15px'>{}</body>"


def _data(name: str) -> tuple[Any, Any, list[Any]]:
    """Return rows, labels and classes."""
    if name == "diabetes":
        X, progression = load_diabetes(return_X_y=True, scaled=False, as_frame=True)
        return X, np.array(_GRADES)[np.digitize(progression, [90, 140, 210])], _GRADES
    X, y = load_benchmark(name, return_X_y=True, as_frame=True)
    return X, y, np.unique(y).tolist()


def _draw_panel(model: ISBOR, target: Path) -> None:
    """Write a picture of what a notebook shows, if there is a browser."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"No picture of the notebook: none of {', '.join(_BROWSERS)} is installed.")
        return
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(_PAGE.format(model._repr_html_()), "utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=780,420",
        ]
        command = [browser, *options, f"--screenshot={target.absolute()}", page.as_uri()]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    print(f"{target} is written.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("--set", default="diabetes", help="diabetes, or a set of load_benchmark")
    parser.add_argument("--to", type=Path, default=Path("docs/images"), help="folder to write to")
    arguments = parser.parse_args()
    X, y, classes = _data(arguments.set)
    n_rows = min(int(0.6 * len(y)), _MOST_ROWS)
    X, X_test, y, y_test = train_test_split(X, y, train_size=n_rows, random_state=100)
    model = ISBOR(basis="mixed", n_members=2, classes=classes).fit(X, y)
    sets = PredictionSetClassifier(ISBOR(effort="fast", classes=classes)).fit(X, y)
    confusion = OrdinalConfusionDisplay.from_estimator(model, X_test, y_test)
    discrimination = DiscriminationDisplay.from_estimator(model, X_test, y_test)
    coverage = PredictionSetDisplay.from_estimator(sets, X_test, y_test)
    print(
        f"{n_rows} rows fitted, {len(y_test)} drawn; mean absolute error {confusion.mean_absolute_error:.2f}"
    )
    print(f"concordance {discrimination.concordance:.2f}, areas {discrimination.areas.round(2).tolist()}")
    print(
        f"sets of 90 % contain, of all labels and those of each class, {coverage.covered.round(2).tolist()}"
    )
    displays = {
        "confusion": confusion,
        "discrimination": discrimination,
        "prediction-sets": coverage,
        "trace": TraceDisplay.from_estimator(model),
    }
    for name, display in displays.items():
        display.figure_.savefig(arguments.to / f"{name}.png", dpi=100)
        print(f"{arguments.to / f'{name}.png'} is written.")
    _draw_panel(model, arguments.to / "notebook.png")


if __name__ == "__main__":
    main()
