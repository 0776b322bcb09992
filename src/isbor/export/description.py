"""A fitted model as plain data: dicts, lists, strings and numbers, one function for each class.

docs/export.md says what they mean and how predictions are computed from them. Two things are brought into a
simpler form than they have here: scores of all models are written as averages, if only of one, and each model
of an average has its thresholds between all classes.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray
from isbor._version import __version__
from isbor.data.encoding import TableEncoding
from isbor.data.ranges import Ranges
from isbor.data.rows import Scaling
from isbor.data.summary import TableSummary
from isbor.data.warps import Preparation, Warp
from isbor.estimators.base import OrdinalClassifier
from isbor.estimators.kernel_machines import KernelClassifier
from isbor.estimators.latent import LatentClassifier
from isbor.gp.dense import DenseModel
from isbor.gp.pooled import LEAST_VARIANCE
from isbor.gp.process import Process, ProcessPosterior
from isbor.gp.reference import InducedFunctions, NoiseProcess
from isbor.inference.sparse import SparseModel
from isbor.kernel.kernels import KernelMachine
from isbor.model.basis import Functions
from isbor.model.cuts import gap_patterns
from isbor.prediction.bands import Reference, even_draws
from isbor.prediction.ensemble import Ensemble, Model

__all__ = ["Described", "describe", "exportable"]

Described: TypeAlias = dict[str, Any]

_MOST_NUMBERS = 2_000_000  # about 40 MB
_LARGEST_WHOLE = 2**53  # larger integers are rounded by readers that have double precision numbers only


def describe(estimator: OrdinalClassifier, bands: bool) -> Described:
    """Return the description of an exportable estimator; without `bands`, what only they need is left out."""
    return {
        "format": "isbor-model",
        "version": 1,
        "made_by": f"isbor {__version__}",
        "estimator": type(estimator).__name__,
        "parameters": repr(estimator),
        "basis": getattr(estimator, "basis_", None),
        "training_weight": estimator._table.total_weight,
        "classes": [_label(label) for label in estimator.classes_.tolist()],
        **_table(estimator._encoding, estimator._table, _relevance(estimator)),
        **_score(estimator),
        "reported": {"centre": estimator._centre, "unit": estimator._unit},
        **_beside(estimator, bands),
    }


def exportable(model: object, owner: str) -> OrdinalClassifier:
    """Return the model if it is fitted and can be exported, else raise an error that names `owner`."""
    if not isinstance(model, OrdinalClassifier):
        raise TypeError(
            f"{owner} got a {type(model).__name__}; a fitted estimator of isbor is needed. Of a pipeline, "
            "export the last step: rows must then be prepared before they are passed to what was exported."
        )
    check_is_fitted(model)
    name = type(model).__name__
    if not isinstance(model._model, Ensemble | Process | KernelMachine):
        raise TypeError(
            f"{owner} cannot export {name}; ISBOR, SBOR, GPOR, SVOR, ISVOR and KDLOR are exported. Fit one "
            "of them."
        )
    if isinstance(model._model, KernelMachine) and model._model.kernel.name == "precomputed":
        raise ValueError(
            f"This {name} has kernel='precomputed'; {owner} needs a kernel that can be computed from the "
            "features. Choose 'rbf', 'linear' or 'poly'."
        )
    n_numbers = _n_numbers(model._model)
    if n_numbers > _MOST_NUMBERS:
        raise ValueError(
            f"This {name} has a function for each of many rows: {owner} would write {n_numbers:,} numbers; "
            f"at most {_MOST_NUMBERS:,} are written. Fit a sparse model, such as ISBOR(basis='mixed'), or "
            "fewer rows."
        )
    return model


def _n_numbers(model: Ensemble | Process | KernelMachine) -> int:
    """Return about how many numbers are needed for predictions."""
    if isinstance(model, Process):
        n = len(model.X)
        return n * (n + 1) // 2 + model.X.size
    if isinstance(model, KernelMachine):
        return model.anchors.X.size
    total = 0
    for part in model.models:
        n = len(part.posterior.coef) if isinstance(part, DenseModel) else len(part)
        total += n * (n + 1) // 2 + n * len(model.preparation.source)
    return total


def _label(label: object) -> object:
    """Return a class or a category as JSON has it, others as text."""
    if isinstance(label, int) and not isinstance(label, bool) and abs(label) > _LARGEST_WHOLE:
        raise ValueError(
            f"The label or category {label} cannot be exported: integers beyond 2^53 are rounded by many "
            "readers, which have double precision numbers only. Convert the column to strings."
        )
    return label if isinstance(label, str | bool | int | float) else str(label)


def _relevance(estimator: OrdinalClassifier) -> list[float] | None:
    found: FloatArray | None = getattr(estimator, "feature_relevance_", None)
    return None if found is None else found.tolist()


# --- From tables to the inputs of functions ----------------------------------------------------------------


def _table(encoding: TableEncoding, table: TableSummary, relevance: Sequence[float] | None) -> Described:
    names = encoding.feature_names or tuple(f"x{j}" for j in range(len(encoding.categories)))
    features = []
    for j, (name, categories) in enumerate(zip(names, encoding.categories, strict=True)):
        feature: Described = {"name": name, "type": "number" if categories is None else "category"}
        typical = float(table.typical[j])
        if categories is None:
            feature |= {"low": float(table.low[j]), "high": float(table.high[j])}
            feature |= {"typical": None if np.isnan(typical) else typical, "whole": bool(table.whole[j])}
        else:
            feature["categories"] = [_label(category) for category in categories]
            feature["typical"] = None if np.isnan(typical) else feature["categories"][int(typical)]
        feature["had_missing"] = bool(encoding.indicator[j])
        feature["relevance"] = None if relevance is None else relevance[j]
        features.append(feature)
    return {
        "refuses_missing": encoding.missing == "error",
        "features": features,
        "columns": _columns(encoding),
    }


def _columns(encoding: TableEncoding) -> list[Described]:
    columns = []
    for (j, what, category), name in zip(encoding.keys, encoding.names, strict=True):
        column: Described = {"name": name, "feature": j, "is": what}
        if what == "is":
            column |= {"is": "category", "category": _label(category)}
        elif what in ("number", "rank"):
            column["fill"] = float(encoding.fill[j])
        columns.append(column)
    return columns


def _scaling(scaling: Scaling) -> Described:
    return {
        "mean": scaling.mean.tolist(),
        "lift": scaling.lift.tolist(),
        "factor": scaling.factor.tolist(),
    }


def _inputs(preparation: Preparation) -> list[Described]:
    return [
        {"column": int(j), "warp": None if warp is None else _warp(warp)}
        for j, warp in zip(preparation.source, preparation.warps, strict=True)
    ]


def _all_columns(scaling: Scaling) -> list[Described]:
    return [{"column": j, "warp": None} for j in range(len(scaling.mean))]


def _warp(warp: Warp) -> Described:
    return {"knots": warp.knots.tolist(), "values": warp.warped.tolist()}


# --- The score ---------------------------------------------------------------------------------------------


def _score(estimator: OrdinalClassifier) -> Described:
    """Describe scaling, inputs, models, and what turns scores into probabilities."""
    model, thresholds = estimator._model, estimator._thresholds
    if isinstance(model, Ensemble):
        scaling, inputs = model.preparation.scaling, _inputs(model.preparation)
        models = _average(model, thresholds)
        temperature, lapse = model.temperature, model.lapse
    elif isinstance(model, Process):
        scaling, models = model.scaling, [_alone(_process(model), thresholds)]
        inputs = _all_columns(scaling)
        temperature, lapse = 1.0, model.lapse
    else:
        machine = cast(KernelMachine, model)
        scaling, models = machine.scaling, [_alone(_machine(machine), thresholds)]
        inputs = _all_columns(scaling)
        temperature, lapse = 1.0, getattr(estimator, "_lapse", 0.0)  # only with probabilities
    return {
        "scaling": _scaling(scaling),
        "inputs": inputs,
        "models": models,
        "thresholds": thresholds.tolist(),
        "temperature": temperature,
        "lapse": lapse,
    }


def _average(ensemble: Ensemble, thresholds: FloatArray) -> list[Described]:
    places = ensemble.threshold_places
    places = np.arange(len(thresholds)) if places is None else places
    described = []
    for (model, share, scale), shift in zip(ensemble._parts(), ensemble._shifts(), strict=True):
        own = scale * model.mode.thresholds + shift - ensemble.thresholds
        part: Described = {"share": share, "scale": scale, "shift": shift}
        part["thresholds"] = (thresholds + own[places]).tolist()
        part["score"] = _dense(model) if isinstance(model, DenseModel) else _sparse(model)
        part["noise"], part["gaps"] = _shape(model, places.tolist())
        described.append(part)
    return described


def _alone(score: Described, thresholds: FloatArray) -> Described:
    """Describe the only model."""
    part: Described = {"share": 1.0, "scale": 1.0, "shift": 0.0, "thresholds": thresholds.tolist()}
    return part | {"score": score, "noise": None, "gaps": None}


def _sparse(model: SparseModel) -> Described:
    functions = _functions(model.functions, model.mode.weights)
    return {"kind": "functions", "functions": functions, "whitening": model.whitening.tolist()}


def _functions(functions: Functions, weights: FloatArray) -> list[Described]:
    described = []
    for m, weight in enumerate(weights.tolist()):
        used = np.flatnonzero(functions.metric[m])
        described.append(
            {
                "shape": "ramp" if functions.ramp[m] else "bump",
                "inputs": used.tolist(),
                "centre": functions.centres[m, used].tolist(),
                "metric": functions.metric[m, used].tolist(),
                "offset": float(functions.offset[m]),
                "weight": weight,
            }
        )
    return described


def _shape(model: Model, places: list[int]) -> tuple[list[float] | None, Described | None]:
    """Describe how noise and gaps between thresholds vary."""
    weights = None if isinstance(model, DenseModel) else model.shape_weights
    if weights is None:
        return None, None
    patterns = gap_patterns(len(model.mode.thresholds), len(weights) - 1)
    if not len(patterns):
        return weights[0].tolist(), None
    return weights[0].tolist(), {
        "thresholds": model.mode.thresholds.tolist(),
        "patterns": patterns.tolist(),
        "weights": weights[1:].tolist(),
        "places": places,
    }


def _dense(model: DenseModel) -> Described:
    n = len(model.posterior.coef)
    functions = model.functions
    parts = [
        {"variance": variance, "metric": functions.metric[k * n].tolist()}
        for k, variance in enumerate(model.variances)
    ]
    least = LEAST_VARIANCE * sum(model.variances)
    return _covariances(functions.centres[:n], parts, model.posterior, least)


def _process(process: Process) -> Described:
    covariance = process.covariance
    part = {"variance": covariance.amplitude**2, "metric": covariance.scales.tolist()}
    return _covariances(process.X, [part], process.posterior, 0.0)


def _covariances(
    rows: FloatArray, parts: list[Described], posterior: ProcessPosterior, least: float
) -> Described:
    return {
        "kind": "process",
        "rows": rows.tolist(),
        "covariance": parts,
        "weights": posterior.coef.tolist(),
        "precision": posterior.precision.tolist(),
        "cholesky": [row[: i + 1].tolist() for i, row in enumerate(posterior.lower)],
        "least_variance": least,
    }


def _machine(machine: KernelMachine) -> Described:
    kernel = machine.kernel
    described: Described = {"kind": "kernel", "kernel": kernel.name}
    described |= {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    return described | {"rows": machine.anchors.X.tolist(), "weights": machine.coef.tolist()}


# --- From the score to probabilities and bands -------------------------------------------------------------


def _beside(estimator: OrdinalClassifier, bands: bool) -> Described:
    """Describe calibration, drift and the reference process, as far as there are any."""
    found: Described = {"probabilities": True, "calibration": None, "drift": None, "reference": None}
    if isinstance(estimator, KernelClassifier):
        calibration = estimator._calibration
        if calibration is None:
            return found | {"probabilities": False}
        thresholds = estimator._response_thresholds.tolist()
        return found | {"calibration": {"slope": calibration.slope, "thresholds": thresholds}}
    estimator = cast(LatentClassifier, estimator)
    found["drift"] = _drift(estimator._ranges, estimator._base_rates)
    if bands and hasattr(estimator, "_reference"):  # there is none before two classes have occurred
        found["reference"] = _reference(estimator._reference, len(estimator._thresholds))
    return found


def _drift(ranges: Ranges, base_rates: FloatArray) -> Described:
    return {
        "columns": ranges.columns.tolist(),
        "low": ranges.low.tolist(),
        "high": ranges.high.tolist(),
        "base_rates": base_rates.tolist(),
    }


def _reference(reference: Reference, n_thresholds: int) -> Described:
    process = reference.process
    return {
        "share": reference.share,
        "fitted": reference.fitted.tolist(),
        "places": reference.places.tolist(),
        "scaling": _scaling(process.scaling),
        "functions": _induced(process.functions),
        "amplitude": process.amplitude,
        "weights": process.coef.tolist(),
        "thresholds": process.thresholds.tolist(),
        "covariance": process.covariance.tolist(),
        "noise": None if process.noise is None else _noise(process.noise),
        "draws": even_draws(n_thresholds).tolist(),
    }


def _induced(functions: InducedFunctions) -> Described:
    return {
        "metric": functions.metric.tolist(),
        "rows": functions.inducing.tolist(),
        "whitening": functions.whitening.tolist(),
        "offset": functions.offset.tolist(),
    }


def _noise(noise: NoiseProcess) -> Described:
    return {
        "functions": _induced(noise.functions),
        "weights": noise.coef.tolist(),
        "directions": noise.directions.tolist(),
        "variances": noise.variances.tolist(),
        "amplitude": noise.amplitude,
    }
