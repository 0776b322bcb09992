"""Weights and thresholds fitted to all rows of a large table, given the functions found on a sample.

With more rows than the sample has, functions, prior precisions and the shape of the response hardly change,
but weights and thresholds get more precise. So only these are fitted to all rows, by Newton's method from the
mode of the sample. The models of an average take their steps together: each pass over the rows expands the
log likelihood of all models that are not at their mode yet.

If the time is up before all modes are found, the result is that of the search: models fitted to the sample,
which hardly differ. Points on the way to a mode would not do, since their Laplace approximation would not be
around a mode.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from isbor._core.linalg import UnresolvedError
from isbor._core.parallel import TimeIsUpError, Workers, row_blocks
from isbor._core.trace import Callback, Step, StopReason
from isbor._core.types import FloatArray
from isbor.data.all_rows import AllRows, Arrays
from isbor.data.sample import EncodedRows
from isbor.data.warps import Preparation
from isbor.inference.compiled_expansion import Block, Sums, add_block, new_sums
from isbor.inference.expansion import Expansion, expansion_at
from isbor.inference.mode import Mode, Point, log_evidence, search_for_mode
from isbor.inference.sparse import SparseModel
from isbor.model.basis import Functions
from isbor.model.cuts import RowShape
from isbor.model.likelihood import edges
from isbor.prediction.ensemble import Ensemble
from isbor.search.result import SearchResult

__all__ = ["fit_to_all_rows"]

_TOL = 1e-6  # Newton decrement at which a mode counts as found, in nats


def fit_to_all_rows(
    result: SearchResult,
    all_rows: AllRows,
    workers: Workers,
    callback: Callback | None,
) -> SearchResult:
    """Return the result of a search on a sample with its models refitted to all rows, if there is time."""
    try:
        return _fitted(result, all_rows, workers, callback)
    except TimeIsUpError:
        return replace(result, stop_reason=StopReason.ONLY_SAMPLE)


def _fitted(
    result: SearchResult, all_rows: AllRows, workers: Workers, callback: Callback | None
) -> SearchResult:
    """Return the result with models fitted to all rows; raise `TimeIsUpError` if the time is up before."""
    ensemble = result.model
    models = cast(tuple[SparseModel, ...], ensemble.models)
    searches = [_search(model) for model in models]
    points = {k: next(search) for k, search in enumerate(searches)}
    modes: dict[int, Mode] = {}
    steps: list[Step] = []
    n_passes = result.n_passes
    while points:
        asked = tuple(_Asked(models[k].functions, models[k].shape_weights, at) for k, at in points.items())
        if workers.is_late():
            raise TimeIsUpError
        n_passes += 1
        sums_of = partial(all_rows.summed, _Expansions(ensemble.preparation, asked))
        sums = workers.once(f"pass {n_passes}", sums_of)
        for place, (k, at) in enumerate(list(points.items())):
            here = expansion_at(at.weights, at.thresholds, Sums(*sums[3 * place : 3 * place + 3]))
            step = _step(models[k], here, all_rows.n_rows, n_passes, k + 1)
            steps.append(step)
            if callback is not None:
                callback(step)
            try:
                points[k] = searches[k].send(here)
            except StopIteration as end:
                modes[k] = end.value
                del points[k]
            except UnresolvedError:  # functions are collinear on all rows: the model of the sample remains
                modes[k] = models[k].mode
                del points[k]
    fitted = [
        replace(model, mode=modes[k], log_evidence=log_evidence(modes[k]), n_rows=all_rows.n_rows)
        for k, model in enumerate(models)
    ]
    whole = Ensemble.of(ensemble.preparation, fitted, all_rows.total_weight)
    whole = replace(whole, temperature=ensemble.temperature)
    return replace(result, model=whole, steps=(*result.steps, *steps), n_passes=n_passes)


def _step(model: SparseModel, here: Expansion, n_rows: int, n_passes: int, run: int) -> Step:
    """Return the record of an expansion on the way to the mode."""
    cost = float(model.functions.cost.sum())
    try:
        evidence = log_evidence(Mode(model.mode.alpha, here))
    except UnresolvedError:
        evidence = np.nan
    return Step("mode", -1, 0.0, evidence, len(model), cost, 0.0, n_passes, n_rows, "all rows", run)


def _search(model: SparseModel) -> Generator[Point, Expansion, Mode]:
    mode = model.mode
    return search_for_mode(mode.alpha, mode.weights, mode.thresholds, tol=_TOL)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An expansion that is asked for."""

    functions: Functions
    shape_weights: FloatArray | None  # (K, m)
    at: Point

    def add_to(self, sums: Sums, prepared: FloatArray, rows: EncodedRows) -> None:
        """Add the expansion of some rows."""
        m, edge = len(self.functions), edges(self.at.thresholds)
        for block in row_blocks(len(rows), m):
            values = np.ascontiguousarray(self.functions(prepared[block]).T)
            shape = RowShape.constant(values.shape[1])
            if self.shape_weights is not None:
                shape = RowShape.of(values, self.shape_weights, len(self.at.thresholds))
            part = Block(values, rows.y[block], rows.weight[block], shape.noise_scale, shape.gap_factors)
            add_block(part, self.at.weights, edge, m, False, sums)


@dataclass(frozen=True, slots=True)
class _Expansions:
    """Expands the log likelihood of some encoded rows for several models."""

    preparation: Preparation
    asked: tuple[_Asked, ...]

    def __call__(self, rows: EncodedRows) -> Arrays:
        """Return the sums over the rows: those of the first model, then those of the next."""
        prepared = self.preparation(rows.X)
        results: list[FloatArray] = []
        for asked in self.asked:
            sums = new_sums(len(asked.functions) + len(asked.at.thresholds))
            asked.add_to(sums, prepared, rows)
            results += sums
        return tuple(results)
