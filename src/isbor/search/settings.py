"""How a search is to be made: what the user asks for, and what a solver needs of it."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import StopReason
from isbor.data.rows import TrainingRows
from isbor.model.basis import RowDictionary
from isbor.prediction.sparse import SparseModel
from isbor.search.recorder import Recorder

__all__ = ["SearchSettings", "Solver", "SolverSettings"]


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """How a solver with rows as centres spends its time."""

    size_prior: float = 2.0  # nats a function
    tol: float = 1e-2  # nats; smaller gains are not worth a move or a pass
    max_iter: int = 1000  # passes, moves or updates
    max_vectors: float = np.inf
    n_candidates: int = 200  # proposed in each pass
    first_rows: int = 4000  # rows of the first stages; all levels must be among them
    patience: int = 2  # unsuccessful restarts in a row before the search is given up
    growth: int = 8  # factor by which the rows grow from stage to stage


class Solver(Protocol):
    """Selects functions centred on rows, all of one metric."""

    def __call__(
        self,
        rows: TrainingRows,
        dictionary: RowDictionary,
        start: SparseModel | None,
        settings: SolverSettings,
        workers: Workers,
        recorder: Recorder,
    ) -> tuple[SparseModel, StopReason]:
        """Return the model found, and why the search ended. Without a start the solver makes its own."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a model is to be fitted, whatever its basis family; the parameters of the estimator."""

    gamma: float | None  # None: by evidence
    size_prior: float
    solver: Literal["gram", "sequential", "batch"]
    n_candidates: int | None  # None: all rows
    tol: float
    patience: int
    max_iter: int
    max_vectors: float  # infinite: no limit
    n_members: int | None  # None: two, or more where that is worth the time
    seed: int
    varying_noise: bool = True  # where the family knows of it
    preliminary: bool = False  # another fit is to follow: a short search will do

    @property
    def has_automatic_size(self) -> bool:
        """Whether a committee may be as large as is worth the time."""
        return self.n_members is None and self.max_vectors == np.inf

    def for_solver(self, rows: TrainingRows) -> SolverSettings:
        """Return the settings of a solver for these rows."""
        return SolverSettings(
            size_prior=self.size_prior,
            tol=self.tol,
            max_iter=self.max_iter,
            max_vectors=self.max_vectors,
            n_candidates=len(rows) if self.n_candidates is None else self.n_candidates,
            first_rows=rows.prefix_size(SolverSettings().first_rows),
            patience=self.patience,
        )
