"""The state of a search: the rows, the model fitted to them, and the shape of the response, fixed for now.

The shape of the response (`isbor.inference.shape`) is fitted given the score; then the score is refitted
given the shape. In between, the shape is fixed.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.shape import (
    FIRST_PRECISION,
    MAX_ROUNDS,
    MAX_STEPS,
    fit_shape,
    shape_at_rows,
    shape_model,
)
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions
from isbor.model.cuts import RowShape
from isbor.search.recorder import Recorder
from isbor.search.solvers.passes import PassSettings, one_pass, shrink

__all__ = ["State", "padded"]

_SHAPE_ROWS = 128_000  # the shape is fitted to a sample of this many rows


@dataclass(frozen=True, slots=True)
class State:
    """Rows, a model fitted to them, and the shape of the response of each row."""

    rows: TrainingRows
    model: SparseModel
    shape: RowShape | None  # None means noise of variance 1, and the same thresholds for all rows
    # Prior precisions of the weights of the shape, (K,), λ.
    shape_precision: FloatArray = field(default_factory=lambda: np.full(1, FIRST_PRECISION))

    @classmethod
    def of(cls, rows: TrainingRows, model: SparseModel, workers: Workers, *, rough: bool = False) -> "State":
        """Return the state after refitting a model to these rows, with its own shape.

        If `rough`, the mode of the score is a rough one (`fit_weights`).
        """
        functions = model.functions.centred_on(rows)
        columns = columns_of(rows, functions, workers)
        return cls._refitted(rows, replace(model, functions=functions), columns, workers, rough)

    @classmethod
    def _refitted(
        cls, rows: TrainingRows, model: SparseModel, columns: Columns, workers: Workers, rough: bool
    ) -> "State":
        mode, shape_weights = model.mode, model.shape_weights
        shape = shape_at_rows(rows, columns, shape_weights, len(mode.thresholds), workers)
        fitted = fit_weights(
            rows,
            model.functions,
            mode.alpha,
            mode.weights,
            mode.thresholds,
            workers,
            shape,
            columns=columns,
            rough=rough,
        )
        return cls(rows, replace(fitted, shape_weights=shape_weights), shape)

    def after_pass(
        self, fresh: Functions, settings: PassSettings, workers: Workers, recorder: Recorder
    ) -> "State":
        """Return the state after a pass in which `fresh` functions are proposed."""
        model = one_pass(self.rows, self.model, fresh, settings, workers, recorder, self.shape)
        return replace(self, model=model)

    def shrunk(self, settings: PassSettings, workers: Workers, recorder: Recorder) -> "State":
        """Return the state with at most `max_vectors` functions."""
        model = shrink(self.rows, self.model, settings, workers, recorder, self.shape)
        return replace(self, model=model)

    def pruned(self, settings: PassSettings, workers: Workers, recorder: Recorder) -> "State":
        """Return the state after deletions."""
        nothing = self.model.functions.take(slice(0))
        return self.after_pass(nothing, settings, workers, recorder).shrunk(settings, workers, recorder)

    def with_shape_model(self, columns: Columns, workers: Workers) -> "State":
        """Return the state in which functions count for what they are worth to the shape."""
        model, sample = self.model, self.rows.head(_SHAPE_ROWS)
        if model.shape_weights is None:
            return self
        of_sample = columns if len(sample) == len(self.rows) else columns_of(sample, model.functions, workers)
        of_shape = shape_model(
            sample,
            model.functions,
            of_sample,
            model.mode,
            model.shape_weights,
            self.precision_of_shape(len(model.shape_weights)),
            workers,
            self.rows.total_weight,
        )
        return replace(self, model=replace(model, shape_model=of_shape))

    def precision_of_shape(self, n_sums: int) -> FloatArray:
        """Return the prior precisions of the weights of the shape, as far as they are known."""
        precision = np.full(n_sums, FIRST_PRECISION)
        precision[: len(self.shape_precision)] = self.shape_precision[:n_sums]
        return precision

    def with_new_shape(
        self,
        n_sums: int,
        workers: Workers,
        recorder: Recorder,
        size_prior: float,
        *,
        max_rounds: int = MAX_ROUNDS,
        max_steps: int = MAX_STEPS,
        rough: bool = False,
    ) -> "State":
        """Return the state after refitting the shape given the score, then the score given the shape.

        The shape consists of `n_sums` sums. It begins with the weights that the model has. `max_rounds` and
        `max_steps` limit `fit_shape`. If `rough`, the mode of the score is a rough one (`fit_weights`).
        """
        rows, model = self.rows, self.model
        start = padded(model.shape_weights, n_sums, len(model))
        columns = columns_of(rows, model.functions, workers)
        sample = rows.head(_SHAPE_ROWS)
        of_sample = columns if len(sample) == len(rows) else columns_of(sample, model.functions, workers)
        found = fit_shape(
            sample,
            model.functions,
            of_sample,
            model.mode,
            start,
            self.precision_of_shape(n_sums),
            workers,
            max_rounds,
            max_steps,
        )
        after = State._refitted(rows, replace(model, shape_weights=found.weights), columns, workers, rough)
        after = replace(after, shape_precision=found.precision)
        recorder.record_whole("noise", model, after.model, size_prior)
        return after

    def objective(self, size_prior: float) -> float:
        """Return the objective of the model."""
        return self.model.objective(size_prior)


def padded(shape_weights: FloatArray | None, n_sums: int, n_functions: int) -> FloatArray:
    """Return weights of the shape for so many sums and functions; those that are missing are zero."""
    weights = np.zeros((n_sums, n_functions))
    if shape_weights is not None:
        q, m = np.minimum(shape_weights.shape, weights.shape)
        weights[:q, :m] = shape_weights[:q, :m]
    return weights
