"""The figures of a report, with captions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments.description.tasks import Holdout, Saddle
from isbor.experiments.description.toml_files import STUDIES
from isbor.experiments.reporting.figures.critical_difference import critical_difference_figure
from isbor.experiments.reporting.figures.curves import (
    CalibrationBins,
    Curve,
    Reference,
    calibration_figure,
    curves_figure,
    likelihood_figure,
)
from isbor.experiments.reporting.figures.score_panels import score_figure
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.difference_tables import friedman_of
from isbor.experiments.running.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURE_NAMES", "study_figures"]

FIGURE_NAMES = ("mae", "seconds", "critical-differences", "calibration", "likelihood")
"""All figures that a report can have."""
_BANDS = "Bands: one standard deviation, but never below half the mean."


def study_figures(results: Results) -> "dict[str, tuple[Figure, str]]":
    """Return the figures with their captions."""
    experiment = results.experiment
    titles = [model.title for model in experiment.models]
    figures: dict[str, tuple[Figure, str]] = {}
    if experiment.grows:
        figures |= _size_figures(results)
    else:
        figures |= _error_figure(results)
    found = friedman_of(results)
    if found is not None:
        figures["critical-differences"] = (
            critical_difference_figure(found, {model.name: model.title for model in experiment.models}),
            f"Mean ranks over {found.n_tasks} data sets; models joined by a bar do not differ at level "
            f"{found.level:g} (Nemenyi).",
        )
    bins = _calibration_bins(results)
    if bins:
        figures["calibration"] = (
            calibration_figure(bins, models=titles),
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
    if not results.counts["ok"]:
        return {}
    shown = {
        task.title: {
            model.title: [
                errors[task.name][model.name].get(split, np.nan) for split in range(experiment.splits)
            ]
            for model in experiment.models
        }
        for task in experiment.tasks
    }
    figure = score_figure(
        shown, xlabel="mean absolute error", models=[model.title for model in experiment.models]
    )
    return {"mae": (figure, "Mean absolute error on each split, and the mean.")}


def _size_figures(results: Results) -> "dict[str, tuple[Figure, str]]":
    experiment = results.experiment
    titles = [model.title for model in experiment.models]
    if not results.counts["ok"]:
        return {}
    error, time = {}, {}
    for model in experiment.models:
        error[model.title] = _curve(results, model.name, lambda record: record.metrics["mae"])
        time[model.title] = _curve(
            results, model.name, lambda record: record.seconds["search"] + record.seconds["fit"]
        )
    reference = _true_score(results)
    return {
        "mae": (
            curves_figure(
                error,
                xlabel="training rows",
                ylabel="mean absolute error",
                title="Error on the other rows",
                log_y=_has_logarithm(error),
                reference=reference,
                models=titles,
            ),
            f"Mean absolute error against the number of training rows. {_BANDS}",
        ),
        "seconds": (
            curves_figure(
                time,
                xlabel="training rows",
                ylabel="seconds of search and fit",
                title="Running time",
                log_y=_has_logarithm(time),
                models=titles,
            ),
            f"Mean seconds of search and fit on one thread. {_BANDS}",
        ),
    }


def _has_logarithm(curves: Mapping[str, Curve]) -> bool:
    return any(np.any(curve.mean > 0.0) for curve in curves.values())


def _curve(results: Results, model: str, of: Callable[[Record], float]) -> Curve:
    rows, mean, low, high = [], [], [], []
    for task in results.experiment.tasks:
        assert isinstance(task.scheme, Holdout)
        values = np.array(list(results.by_split(task.name, model, of).values()))
        centre = float(values.mean()) if len(values) else np.nan
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        rows.append(task.scheme.train)
        mean.append(centre)
        low.append(max(centre - spread, 0.5 * centre))  # positive, for the logarithm
        high.append(centre + spread)
    return Curve(np.array(rows, dtype=np.float64), np.array(mean), np.array(low), np.array(high))


def _true_score(results: Results) -> Reference | None:
    """Return the error of the noise-free score on the same test rows, for the saddle."""
    source = results.experiment.tasks[0].source
    if not isinstance(source, Saddle):
        return None
    _, y, score = make_saddle(source.rows, random_state=source.random_state, return_score=True)
    wrong = np.abs(y - saddle_labels(score))
    rows, errors = [], []
    for task in results.experiment.tasks:
        assert isinstance(task.scheme, Holdout)
        tests = [
            task.scheme.split(y, split, results.experiment.seed)[1]
            for split in range(results.experiment.splits)
        ]
        rows.append(task.scheme.train)
        errors.append(np.mean([wrong[test].mean() for test in tests]))
    return Reference("true score", np.array(rows, dtype=np.float64), np.array(errors))


def _calibration_bins(results: Results) -> dict[str, CalibrationBins]:
    """Return the bins of each model with probabilities, over all its records."""
    found = {}
    for model in results.experiment.models:
        sums = [
            np.array(record.calibration)
            for task in results.experiment.tasks
            for record in results.finished(task.name, model.name)
            if record.calibration
        ]
        if not sums:
            continue
        count, predicted, observed = np.sum(sums, axis=0).T
        used = count > 0
        found[model.title] = CalibrationBins(
            count[used].astype(np.intp), predicted[used] / count[used], observed[used] / count[used]
        )
    return found
