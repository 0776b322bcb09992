"""The figures of a report, with captions."""

from typing import TYPE_CHECKING

import numpy as np

from isbor._core.types import FloatArray
from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments.description.tasks import Holdout, Saddle
from isbor.experiments.description.toml_files import STUDIES
from isbor.experiments.reporting.figures.critical_difference import critical_difference_figure
from isbor.experiments.reporting.figures.curves import (
    calibration_figure,
    curves_figure,
    likelihood_figure,
)
from isbor.experiments.reporting.figures.score_panels import score_figure
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.difference_tables import friedman_of
from isbor.experiments.reporting.tables.quantities import MAE, SECONDS, Quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE_NAMES", "study_figures"]

FIGURE_NAMES = ("mae", "seconds", "critical-differences", "calibration", "likelihood")
"""All figures that a report can have."""
_BANDS = "Bands: one standard deviation, but never below half the mean."


def study_figures(results: Results) -> "dict[str, tuple[Figure, str]]":
    """Return the figures with their captions."""
    experiment = results.experiment
    figures: dict[str, tuple[Figure, str]] = {}
    if results.counts["ok"]:
        figures |= _size_figures(results) if experiment.grows else _error_figure(results)
    found = friedman_of(results)
    if found is not None:
        figures["critical-differences"] = (
            critical_difference_figure(found, {model.name: model.title for model in experiment.models}),
            f"Mean ranks over {found.n_tasks} data sets; models joined by a bar do not differ at level "
            f"{found.level:g} (Nemenyi).",
        )
    sums = {
        model.title: results.calibration([task.name for task in experiment.tasks], model.name)
        for model in experiment.models
    }
    if any(of_model is not None for of_model in sums.values()):
        figures["calibration"] = (
            calibration_figure(sums),
            "Predicted probabilities P(y ≤ k) of all test rows and thresholds, and observed frequencies.",
        )
    if experiment.name in STUDIES:
        figures["likelihood"] = (
            likelihood_figure(),
            "The likelihood of each class and its derivatives with respect to the score.",
        )
    return figures


def _error_figure(results: Results) -> "dict[str, tuple[Figure, str]]":
    experiment, errors = results.experiment, results.errors()
    shown = {
        task.title: {
            model.title: [
                errors[task.name][model.name].get(split, np.nan) for split in range(experiment.splits)
            ]
            for model in experiment.models
        }
        for task in experiment.tasks
    }
    figure = score_figure(shown, xlabel="mean absolute error")
    return {"mae": (figure, "Mean absolute error on each split, and the mean.")}


def _size_figures(results: Results) -> "dict[str, tuple[Figure, str]]":
    def draw(quantity: Quantity, ylabel: str, title: str, reference: FloatArray | None = None) -> "Figure":
        values = {
            model.title: [
                np.array(list(results.by_split(task.name, model.name, quantity.of).values()))
                for task in results.experiment.tasks
            ]
            for model in results.experiment.models
        }
        return curves_figure(sizes, values, ylabel=ylabel, title=title, reference=reference)

    schemes = [task.scheme for task in results.experiment.tasks]
    sizes = [scheme.train for scheme in schemes if isinstance(scheme, Holdout)]
    return {
        "mae": (
            draw(MAE, "mean absolute error", "Error on the other rows", _true_errors(results)),
            f"Mean absolute error against the number of training rows. {_BANDS}",
        ),
        "seconds": (
            draw(SECONDS, "seconds of search and fit", "Running time"),
            f"Mean seconds of search and fit on one thread. {_BANDS}",
        ),
    }


def _true_errors(results: Results) -> FloatArray | None:
    """Return the error of the noise-free score on the test rows of each task, for the saddle."""
    experiment = results.experiment
    source = experiment.tasks[0].source
    if not isinstance(source, Saddle):
        return None
    _, y, score = make_saddle(source.rows, random_state=source.random_state, return_score=True)
    wrong = np.abs(y - saddle_labels(score))
    return np.array(
        [
            np.mean(
                [
                    wrong[task.scheme.split(y, split, experiment.seed)[1]].mean()
                    for split in range(experiment.splits)
                ]
            )
            for task in experiment.tasks
        ]
    )
