"""The state of a search: the rows, the model fitted to them, and the noise, which is fixed for now.

Varying noise (`isbor.inference.noise`) is fitted given the score; then the score is refitted given the noise.
In between, the noise is fixed.
"""

from dataclasses import dataclass, replace

from isbor._core.parallel import Workers
from isbor._core.types import FloatArray
from isbor.data.rows import TrainingRows
from isbor.inference.expansion import Columns, columns_of
from isbor.inference.noise import FIRST_PRECISION, fit_noise, noise_scale_at_rows
from isbor.inference.sparse import SparseModel, fit_weights
from isbor.model.basis import Functions
from isbor.search.recorder import Recorder
from isbor.search.solvers.passes import PassSettings, one_pass, shrink

__all__ = ["State"]

_NOISE_ROWS = 32_000  # the noise is fitted to a sample of this many rows


@dataclass(frozen=True, slots=True)
class State:
    """Rows, a model fitted to them, and the noise of each row."""

    rows: TrainingRows
    model: SparseModel
    noise_scale: FloatArray | None  # (n,) standard deviation of each row's noise; None means 1
    noise_precision: float = FIRST_PRECISION  # prior precision of the weights of the log noise scale, λ

    @classmethod
    def of(cls, rows: TrainingRows, model: SparseModel, workers: Workers) -> "State":
        """Return the state after refitting a model to these rows, with its own noise."""
        functions = model.functions.centred_on(rows)
        columns = columns_of(rows, functions, workers)
        return cls._refitted(rows, replace(model, functions=functions), columns, workers)

    @classmethod
    def _refitted(cls, rows: TrainingRows, model: SparseModel, columns: Columns, workers: Workers) -> "State":
        mode, noise_weights = model.mode, model.noise_weights
        noise_scale = noise_scale_at_rows(rows, columns, noise_weights, workers)
        fitted = fit_weights(
            rows,
            model.functions,
            mode.alpha,
            mode.weights,
            mode.thresholds,
            workers,
            noise_scale,
            columns=columns,
        )
        return cls(rows, replace(fitted, noise_weights=noise_weights), noise_scale)

    def after_pass(
        self, fresh: Functions, settings: PassSettings, workers: Workers, recorder: Recorder
    ) -> "State":
        """Return the state after a pass in which `fresh` functions are proposed."""
        model = one_pass(self.rows, self.model, fresh, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)

    def shrunk(self, settings: PassSettings, workers: Workers, recorder: Recorder) -> "State":
        """Return the state with at most `max_vectors` functions."""
        model = shrink(self.rows, self.model, settings, workers, recorder, self.noise_scale)
        return replace(self, model=model)

    def with_new_noise(self, workers: Workers, recorder: Recorder, size_prior: float) -> "State":
        """Return the state after refitting the noise given the score, then the score given the noise."""
        rows, model = self.rows, self.model
        columns = columns_of(rows, model.functions, workers)
        sample = rows.head(_NOISE_ROWS)
        of_sample = columns if len(sample) == len(rows) else columns_of(sample, model.functions, workers)
        noise_weights, precision = fit_noise(
            sample, model.functions, of_sample, model.mode, workers, self.noise_precision
        )
        after = State._refitted(rows, replace(model, noise_weights=noise_weights), columns, workers)
        after = replace(after, noise_precision=precision)
        recorder.record_whole("noise", model, after.model, size_prior)
        return after

    def objective(self, size_prior: float) -> float:
        """Return the objective of the model."""
        return self.model.objective(size_prior)
