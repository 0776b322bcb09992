"""Settings of a search: those of the estimator, and those of a solver."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor.data.rows import TrainingRows
from isbor.gp.two_scales import TwoScales
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.model.cuts import Varying
from isbor.search.recorder import Recorder

__all__ = ["Effort", "SearchSettings", "Solver", "SolverSettings"]


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """Settings of a solver for functions centred on training rows."""

    size_prior: float = 2.0  # nats per function
    tol: float = 1e-2  # nats; a move or pass that gains less ends the search
    max_iter: int = 1000  # passes, moves or updates
    max_vectors: float = np.inf
    n_candidates: int = 200  # proposed in each pass
    first_rows: int = 4000  # rows of the first phases; must include all levels
    patience: int = 2  # unsuccessful restarts in a row after which the search ends
    growth: int = 8  # factor by which the number of rows grows from phase to phase


class Solver(Protocol):
    """A function that selects basis functions centred on rows, all with one metric."""

    def __call__(
        self,
        rows: TrainingRows,
        dictionary: RowDictionary,
        start: SparseModel | None,
        settings: SolverSettings,
        workers: Workers,
        recorder: Recorder,
    ) -> tuple[SparseModel, StopReason]:
        """Return the model found, and why the search ended. If `start` is None, the solver makes its own."""


Effort: TypeAlias = Literal["fast", "default", "thorough"]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of a fit, for all basis families: the parameters of the estimator."""

    gamma: float | None  # None: chosen by evidence
    size_prior: float
    solver: Literal["gram", "sequential", "batch"]
    n_candidates: int | None  # None: all rows
    tol: float
    patience: int
    max_iter: int
    max_vectors: float  # infinite: no limit
    n_members: int | None  # None: chosen automatically
    seed: int
    varying: Varying = "thresholds"  # what varies with the row in a "mixed" model besides the score
    preliminary: bool = False  # a short search, because another fit follows
    effort: Effort = "default"
    first_gamma: float | None = None  # a guess of the width, near which it is chosen
    first_process: TwoScales | None = None  # parameters from which those of "gp" are searched

    @property
    def has_automatic_size(self) -> bool:
        """Whether the number of committee members is chosen automatically."""
        return self.n_members is None and self.max_vectors == np.inf

    def for_solver(self, rows: TrainingRows) -> SolverSettings:
        """Return the solver's settings for these rows."""
        return SolverSettings(
            size_prior=self.size_prior,
            tol=self.tol,
            max_iter=self.max_iter,
            max_vectors=self.max_vectors,
            n_candidates=len(rows) if self.n_candidates is None else self.n_candidates,
            first_rows=rows.prefix_size(SolverSettings().first_rows),
            patience=self.patience,
        )
