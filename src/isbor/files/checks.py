"""What holds for the parts of every fitted model, so that no file leads compiled code astray.

The codecs make sure of types. Here sizes that belong together are compared, indices are limited to what they
point into, and numbers to those with which the parts can be used.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.data.encoding import TableEncoding
from isbor.data.frames import Category
from isbor.data.ranges import Ranges
from isbor.data.reservoir import Reservoir
from isbor.data.rows import Scaling, TrainingRows
from isbor.data.sampled import Kept
from isbor.data.schema import Schema
from isbor.data.summary import TableSummary
from isbor.data.training_set import TrainingSet
from isbor.data.warps import Preparation, Warp
from isbor.files.errors import damaged
from isbor.files.shapes import sizes_of
from isbor.gp.dense import DenseMode, DenseModel
from isbor.gp.process import Process, ProcessPosterior
from isbor.gp.reference import InducedFunctions, NoiseProcess, ReferenceProcess
from isbor.inference.expansion import Expansion, Later
from isbor.inference.mode import Mode
from isbor.inference.shape import ShapeModel
from isbor.inference.sparse import SparseModel
from isbor.inspection.background import Background
from isbor.kernel.calibration import Calibration
from isbor.kernel.kernels import Kernel, KernelMachine
from isbor.kernel.machine import Learned, Machine
from isbor.model.basis import Functions
from isbor.model.cuts import n_shape_sums
from isbor.model.linear import LinearModel
from isbor.prediction.bands import Reference
from isbor.prediction.ensemble import Ensemble
from isbor.search.adaptive.carried import Prepared
from isbor.search.adaptive.online import Member
from isbor.search.families.streamed import Streamed

__all__ = ["ascend", "check", "need", "within"]

_SHAPES: dict[type, str] = {
    TableEncoding: "categories d, ranked d, fill d, indicator d",
    Scaling: "mean d, lift d, factor d, varying d, order d",
    Warp: "knots k, warped k",
    Preparation: "source p, warps p",
    Prepared: "encoding.feature d, preparation.scaling.mean d",
    Ranges: "columns c, low c, high c",
    Background: "X n d, share n, low d, high d",
    TableSummary: "low d, high d, typical d, whole d",
    TrainingRows: "X n d, y n, weight n, source n",
    TrainingSet: "observed r, X N D, weight N, rows.X n D, encoding.feature D, scaling.mean D",
    Schema: "categories d, declared d, ordered d, empty d",
    Reservoir: "cells n d, codes n, weight n, chance n, recency n, information n, least n, new n, number n, "
    "limits r, of_class r",
    Kept: "schema.categories d, reservoir.cells n d, classes r, reservoir.limits r",
    Functions: "centres m d, metric m d, ramp m, offset m, origin m, cost m",
    Expansion: "weights n, thresholds k, gradient n+k, precision n+k n+k",
    Later: "values n N, curvature N",
    Mode: "alpha m, expansion.weights m",
    ShapeModel: "precision K m m, linear K m, prior K m",
    SparseModel: "functions.offset m, mode.alpha m",
    DenseMode: "thresholds k, weights m, alpha m",
    DenseModel: "functions.offset m, mode.weights m, posterior.coef n",
    ProcessPosterior: "precision n, linear n, coef n, lower n n",
    Process: "X n d, scaling.mean d, covariance.scales d, posterior.coef n",
    LinearModel: "weights d, scaling.mean d",
    InducedFunctions: "metric d, inducing M d, whitening M m, offset m",
    NoiseProcess: "coef m, functions.offset m, directions m m, variances m",
    ReferenceProcess: "scaling.mean d, functions.metric d, functions.offset m, coef m, thresholds K, "
    "covariance m+K m+K",
    Reference: "process.thresholds K, fitted K, places t",
    Ensemble: "models n, shares n, scales n",
    KernelMachine: "coef m, anchors.y m, scaling.mean d",
    Calibration: "thresholds k",
    Machine: "alpha n J, low n J, high n J, score n, thresholds J, member_row m, member_threshold m, "
    "inverse J+m J+m",
    Learned: "gram.values n n, training.rows.y n, fold n",
    Member: "shape_precision K, observed r, numbers m",
}
_NOT_FINITE = {
    (TableEncoding, "fill"),
    (TableSummary, "low"),
    (TableSummary, "high"),
    (TableSummary, "typical"),
    (Reservoir, "cells"),
    (Reservoir, "least"),
    (Reservoir, "limits"),
}


def check(value: Any) -> None:
    """Raise `ModelFileError` if the members of an object do not belong together."""
    kind = type(value)
    sizes = sizes_of(value, _SHAPES.get(kind, ""))
    for field in fields(value):
        member = getattr(value, field.name)
        is_float = isinstance(member, np.ndarray) and member.dtype.kind == "f"
        if is_float and (kind, field.name) not in _NOT_FINITE:
            need(np.isfinite(member).all(), f"{field.name} of {kind.__name__} is not finite")
    if kind in _RULES:
        need(_RULES[kind](value, sizes), f"the members of a {kind.__name__} do not belong together")


def need(holds: Any, otherwise: str) -> None:
    """Raise `ModelFileError` unless something holds."""
    if not holds:
        raise damaged(otherwise)


def within(indices: IntArray | FloatArray | Sequence[int], n: int) -> bool:
    """Whether these are indices of n things."""
    return bool(((0 <= np.asarray(indices)) & (np.asarray(indices) < n)).all())


def ascend(values: Any) -> bool:
    """Whether no number is smaller than the one before; NaN is."""
    return bool((values[1:] >= values[:-1]).all())


def _encoding(encoding: TableEncoding, sizes: dict[str, int]) -> bool:
    is_numeric = np.array([of_feature is None for of_feature in encoding.categories], np.bool_)
    return (
        sizes["d"] > 0
        and (encoding.feature_names is None or len(encoding.feature_names) == sizes["d"])
        and all(map(_are_categories, encoding.categories))
        and not (encoding.ranked & is_numeric).any()
        and bool(np.isfinite(encoding.fill[is_numeric | encoding.ranked]).all())
    )


def _are_categories(categories: tuple[Category, ...] | None) -> bool:
    """Whether categories are distinct and of one kind."""
    kinds = {float if type(category) is int else type(category) for category in categories or ()}
    return len(kinds) <= 1 and len(set(categories or ())) == len(categories or ())


def _scaling(scaling: Scaling, sizes: dict[str, int]) -> bool:
    is_order = np.array_equal(np.sort(scaling.order), np.arange(sizes["d"]))
    return is_order and bool((scaling.factor >= 0.0).all() and (scaling.lift > 0.0).all())


def _warp(warp: Warp, sizes: dict[str, int]) -> bool:
    return sizes["k"] > 1 and bool((warp.knots[1:] > warp.knots[:-1]).all()) and ascend(warp.warped)


def _training_set(training: TrainingSet, sizes: dict[str, int]) -> bool:
    place = training.rows.source if training.place is None else training.place
    return (
        _are_levels(training.observed, len(training.classes))
        and within(training.rows.y, sizes["r"])
        and np.shape(place) == (sizes["n"],)
        and within(place, sizes["N"])
    )


def _are_levels(observed: IntArray, n_levels: int) -> bool:
    """Whether these are some of the levels, in order."""
    return within(observed, n_levels) and bool((np.diff(observed) > 0).all())


def _reservoir(reservoir: Reservoir, sizes: dict[str, int]) -> bool:
    return (
        reservoir.capacity > 0
        and reservoir.seed >= 0
        and sizes["r"] > 0
        and within(reservoir.codes, sizes["r"])
        and bool((reservoir.weight > 0.0).all() and (reservoir.of_class >= 0.0).all())
    )


def _kept(kept: Kept, sizes: dict[str, int]) -> bool:
    schema, columns = kept.schema, kept.reservoir.cells.T
    names = schema.names is None or len(schema.names) == sizes["d"]
    return names and all(
        not np.isinf(cells).any()
        if known is None
        else _are_categories(known) and within(cells[~np.isnan(cells)], len(known))
        for known, cells in zip(schema.categories, columns, strict=True)
    )


def _expansion(expansion: Expansion, sizes: dict[str, int]) -> bool:
    return sizes["k"] > 0 and ascend(expansion.thresholds)


def _sparse_model(model: SparseModel, sizes: dict[str, int]) -> bool:
    shapes = [] if model.shape_weights is None else [model.shape_weights]
    shapes += [] if model.shape_model is None else [model.shape_model.linear]
    most = n_shape_sums("thresholds", len(model.mode.thresholds))
    return all(shape.ndim == 2 and shape.shape[1] == sizes["m"] for shape in shapes) and all(
        1 <= len(shape) <= most for shape in shapes
    )


def _ensemble(ensemble: Ensemble, sizes: dict[str, int]) -> bool:
    models, places = ensemble.models, ensemble.threshold_places
    n_columns = len(ensemble.preparation.source)
    return (
        len({len(model.mode.thresholds) for model in models}) == 1
        and all(model.functions.centres.shape[1] == n_columns for model in models)
        and all(0.0 < x < np.inf for x in (*ensemble.shares, *ensemble.scales, ensemble.temperature))
        and (places is None or (places.ndim == 1 and within(places, len(models[0].mode.thresholds))))
    )


def _kernel_machine(machine: KernelMachine, sizes: dict[str, int]) -> bool:
    if machine.kernel.name == "precomputed":
        return within(machine.anchors.source, sizes["d"])
    return bool(machine.anchors.X.shape[1] == sizes["d"])


def _learned(learned: Learned, sizes: dict[str, int]) -> bool:
    n_thresholds = len(learned.training.observed) - 1
    return (
        len(learned.machines) > 0
        and bool((learned.fold >= -1).all())
        and all(machine.alpha.shape == (sizes["n"], n_thresholds) for machine in learned.machines)
    )


def _member(member: Member, sizes: dict[str, int]) -> bool:
    model = member.model
    if model is None:
        return sizes["m"] == 0
    n_sums = 0 if model.shape_weights is None else len(model.shape_weights)
    return (
        len(model) == sizes["m"]
        and len(model.mode.thresholds) == sizes["r"] - 1
        and sizes["K"] in (0, n_sums)
        and bool((np.diff(member.observed) > 0).all())
    )


def _streamed(streamed: Streamed, sizes: dict[str, int]) -> bool:
    prepared, members = streamed.prepared, streamed.members
    if prepared is None:
        return not members
    n_columns, n_levels = len(prepared.preparation.source), len(streamed.kept.classes)
    return (
        len(prepared.encoding.categories) == len(streamed.kept.schema.categories)
        and streamed.calls >= 0
        and all(_are_levels(member.observed, n_levels) for member in members)
        and all(
            member.model is None or member.model.functions.centres.shape[1] == n_columns for member in members
        )
    )


_RULES: dict[type, Callable[[Any, dict[str, int]], Any]] = {
    TableEncoding: _encoding,
    Scaling: _scaling,
    Warp: _warp,
    Preparation: lambda some, _: within(some.source, len(some.scaling.mean)),
    TrainingRows: lambda rows, _: (rows.y >= 0).all() and (rows.weight > 0.0).all(),
    TrainingSet: _training_set,
    Reservoir: _reservoir,
    Kept: _kept,
    Expansion: _expansion,
    SparseModel: _sparse_model,
    DenseModel: lambda model, sizes: sizes["m"] == len(model.variances) * sizes["n"] > 0,
    ReferenceProcess: lambda process, sizes: (
        process.noise is None or len(process.noise.functions.metric) == sizes["d"]
    ),
    Reference: lambda some, sizes: within(some.places, sizes["K"]) and within(some.fitted, sizes["t"]),
    Background: lambda rows, sizes: (
        sizes["n"] > 0 and (rows.share > 0.0).all() and (rows.low <= rows.high).all()
    ),
    Ensemble: _ensemble,
    Kernel: lambda kernel, _: kernel.gamma > 0.0 and kernel.degree > 0,
    KernelMachine: _kernel_machine,
    Machine: lambda machine, sizes: (
        within(machine.member_row, sizes["n"]) and within(machine.member_threshold, sizes["J"])
    ),
    Learned: _learned,
    Member: _member,
    Streamed: _streamed,
}
