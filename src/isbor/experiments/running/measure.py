"""How a job is run: search, fit, predict, measure."""

import time
import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from isbor._core.types import FloatArray, IntArray
from isbor.data.encoding import learn_table
from isbor.data.frames import take_rows
from isbor.experiments.description.experiment import Job
from isbor.experiments.description.models import Model, make_estimator, plain_parameters
from isbor.experiments.description.tasks import Data
from isbor.experiments.running.grid_search import best_point
from isbor.experiments.running.records import Record
from isbor.metrics import (
    accuracy,
    average_mae,
    log_loss,
    mean_absolute_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)

__all__ = ["CALIBRATION_BINS", "kept_vectors", "measure"]

CALIBRATION_BINS = 10  # of equal width


def measure(job: Job) -> Record:
    """Run a job and return its record; errors of the model are raised."""
    data = job.task.load()
    train, test = job.task.scheme.split(data.y, job.split, job.seed)
    train = train[: job.model.rows_at_most]
    X, X_test = _inputs(job.model, data, train, test)
    y, y_test = data.y[train], data.y[test]
    n_classes = len(data.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class in y has only")
        searching = time.perf_counter()
        chosen = _search(job, X, y)
        searched = time.perf_counter()
        estimator = _estimator(job.model, chosen, n_classes)  # imports its package, which is no part of a fit
        fitting = time.perf_counter()
        estimator.fit(X, y)
        predicting = time.perf_counter()
        predicted = estimator.predict(X_test)
        proba = _probabilities(estimator, X_test, n_classes)
        end = time.perf_counter()
    return Record(
        job.task.name,
        job.model.name,
        job.split,
        "ok",
        n_train=len(y),
        n_test=len(y_test),
        metrics=_metrics(y_test, predicted, proba, n_classes),
        vectors=kept_vectors(estimator),
        parameters={**chosen, **_learned(estimator)},
        calibration=() if proba is None else _calibration(y_test, proba),
        seconds={
            "search": searched - searching,
            "fit": predicting - fitting,
            "predict": end - predicting,
        },
    )


def _inputs(model: Model, data: Data, train: IntArray, test: IntArray) -> tuple[Any, Any]:
    X, X_test = take_rows(data.X, train), take_rows(data.X, test)
    if model.inputs == "table":
        return X, X_test
    encoding, matrix = learn_table(model.title, X, missing="indicator")
    varying = np.ptp(matrix, axis=0) > 0.0
    kept = varying | ~varying.any()
    scaler = StandardScaler().fit(matrix[:, kept])
    return scaler.transform(matrix[:, kept]), scaler.transform(encoding(model.title, X_test)[:, kept])


def _search(job: Job, X: Any, y: IntArray) -> dict[str, Any]:
    """Return the best grid point by cross-validation on the training rows."""
    model, search = job.model, job.search
    if not model.grid:
        return {}
    n_rows = len(y) if search.rows_at_most is None else min(search.rows_at_most, len(y))
    rows = np.arange(n_rows)  # already in random order
    estimator = make_estimator(
        model.searched_by or model.estimator,
        {**model.parameters, **model.search_parameters},
    )
    return plain_parameters(best_point(estimator, model.grid, take_rows(X, rows), y[rows], search))


def _estimator(model: Model, chosen: Mapping[str, Any], n_classes: int) -> Any:
    """Return an estimator; if it has a parameter `classes`, it is told all of them."""
    estimator = make_estimator(model.estimator, {**model.parameters, **chosen})
    if "classes" in estimator.get_params():
        estimator.set_params(classes=list(range(n_classes)))
    return estimator


def _probabilities(estimator: Any, X: Any, n_classes: int) -> FloatArray | None:
    """Return P(y = k), shape (n, n_classes), if the model has probabilities."""
    if not hasattr(estimator, "predict_proba"):
        return None
    given = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    proba = np.zeros((len(given), n_classes))
    proba[:, np.asarray(estimator.classes_, dtype=np.intp)] = given
    return proba


def _metrics(y: IntArray, predicted: IntArray, proba: FloatArray | None, n_classes: int) -> dict[str, float]:
    labels = np.arange(n_classes)
    of_labels = {
        "mae": mean_absolute_error,
        "accuracy": accuracy,
        "amae": average_mae,
        "qwk": quadratic_weighted_kappa,
    }
    found = {name: float(metric(y, predicted, labels=labels)) for name, metric in of_labels.items()}
    if proba is not None:
        found["rps"] = float(ranked_probability_score(y, proba, labels=labels))
        found["log_loss"] = float(log_loss(y, proba, labels=labels))
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _calibration(y: IntArray, proba: FloatArray) -> tuple[tuple[float, float, float], ...]:
    """Return count and sums of predicted and observed P(y ≤ k) over rows and thresholds, per bin."""
    n_thresholds = proba.shape[1] - 1
    predicted = np.clip(proba.cumsum(axis=1)[:, :-1], 0.0, 1.0).ravel()
    observed = (y[:, None] <= np.arange(n_thresholds)).ravel()
    bins = np.minimum((predicted * CALIBRATION_BINS).astype(np.intp), CALIBRATION_BINS - 1)
    sums = [np.bincount(bins, weights, CALIBRATION_BINS) for weights in (None, predicted, observed)]
    return tuple((float(n), float(p), float(o)) for n, p, o in zip(*sums, strict=True))


def kept_vectors(estimator: Any) -> int | None:
    """Return the number of relevance or support vectors, None if the model has none."""
    for name in ("relevance_vectors_", "support_"):
        if hasattr(estimator, name):
            return len(getattr(estimator, name))
    return None


def _learned(estimator: Any) -> dict[str, Any]:
    """Return what the model chose within the fit, if it is a string or a number."""
    attributes = {"basis": "basis_", "gamma": "gamma_", "functions": "n_functions_"}
    learned = {name: getattr(estimator, attribute, None) for name, attribute in attributes.items()}
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in learned.items()
        if isinstance(value, str | Real)
    }
