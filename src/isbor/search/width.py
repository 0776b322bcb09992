"""The width of the basis functions, chosen by evidence.

For each width on a logarithmic grid, a model is fitted to a stratified sample of the rows. The width with the
highest objective, log evidence minus size-prior penalty, is chosen. A limit on the number of functions holds
for these models, too: of fewer functions, each has to be wider. (On small noisy data sets, the evidence
alone favours narrow widths with many functions.) The search goes from a wide width to narrower ones until the
objective is clearly lower, then to wider ones. It is then refined around the best width on a larger sample;
each fit starts from the best model so far.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step
from isbor.data.rows import TrainingRows
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.gram import solve_gram
from isbor.search.starts import refit

__all__ = ["ChosenWidth", "WidthTrial", "choose_width"]

_COARSE_ROWS = 1500
_FINE_ROWS = 4000
# Widths are numbered by k: γ = 2^(1 + k/2)/d, because the mean squared distance of standardised rows is 2d.
# The coarse grid has every fourth k.
_COARSE_GRID = range(-24, 13, 4)
_START = 3
# The search towards narrow widths ends when the objective is this many nats below the best twice in a row.
# Towards wide ones, where functions become nearly polynomial, it ends as soon as the objective falls.
_CLEARLY_WORSE = 5.0
# Of rough trials: rows of coarse and fine grid, and nats that a pass must gain to be followed by another.
_ROUGH_ROWS = 500
_ROUGH_FINE_ROWS = 1000
_ROUGH_TOL = 0.5


@dataclass(frozen=True, slots=True)
class WidthTrial:
    """One width that was tried, and the model found."""

    gamma: float
    log_evidence: float
    objective: float  # log evidence minus size-prior penalty
    n_active: int  # functions in the model
    n_rows: int  # distinct rows in the sample


@dataclass(frozen=True, slots=True)
class ChosenWidth:
    """A width, the model found, and the steps of the search."""

    gamma: float
    model: SparseModel
    objective: float
    steps: tuple[Step, ...]


def choose_width(
    rows: TrainingRows,
    n_features: int,
    settings: SolverSettings,
    workers: Workers,
    callback: Callback | None = None,
    *,
    stage: Stage = "width",
    first: float | None = None,
    roughly: bool = False,
) -> tuple[ChosenWidth, tuple[WidthTrial, ...]]:
    """Return the best width with a model to start from, and all widths tried.

    `n_features` is the number of features that vary. If the best width is about `first`, only its
    neighbourhood is searched. `roughly` saves time where another search will follow.
    """
    trials: list[WidthTrial] = []

    def attempt(sample: TrainingRows, k: int, start: ChosenWidth | None) -> ChosenWidth:
        gamma = 2.0 ** (1 + k / 2) / n_features
        dictionary = RowDictionary(rows, gamma)
        begin = refit(sample, dictionary, start.model, workers) if start else None
        recorder = Recorder(stage, rows.source, callback, start.steps if start else ())
        model, _ = solve_gram(sample, dictionary, begin, settings, workers, recorder)
        objective = model.objective(settings.size_prior)
        trials.append(WidthTrial(gamma, model.log_evidence, objective, len(model), len(sample)))
        return ChosenWidth(gamma, model, objective, recorder.all_steps)

    settings = replace(settings, first_rows=len(rows), patience=0)
    coarse_rows, fine_rows = _COARSE_ROWS, _FINE_ROWS
    if roughly:
        settings = replace(settings, tol=max(settings.tol, _ROUGH_TOL))
        coarse_rows, fine_rows = _ROUGH_ROWS, _ROUGH_FINE_ROWS
    if first is None:
        sample = rows.head(rows.prefix_size(coarse_rows))
        best, found = _coarse(lambda k: attempt(sample, k, None), workers)
        if len(sample) < len(rows):
            sample = rows.head(rows.prefix_size(fine_rows))
            found = {best: attempt(sample, best, found[best])}
    else:
        sample = rows.head(rows.prefix_size(fine_rows))
        k = round(2.0 * np.log2(first * n_features)) - 2
        best = int(np.clip(k, _COARSE_GRID[0], _COARSE_GRID[-1]))
        found = {best: attempt(sample, best, None)}
    # Try narrower widths first, because more rows allow narrower functions; continue while the objective
    # rises.
    for step in (2, -2) if roughly else (2, -2, 1, -1):
        while best + step not in found and _COARSE_GRID[0] <= best + step <= _COARSE_GRID[-1]:
            if workers.is_late():
                break
            found[best + step] = attempt(sample, best + step, found[best])
            if found[best + step].objective <= found[best].objective:
                break
            best += step
    return found[best], tuple(trials)


def _coarse(attempt: Callable[[int], ChosenWidth], workers: Workers) -> tuple[int, dict[int, ChosenWidth]]:
    """Return the best width of the coarse grid, and all that were tried."""
    found: dict[int, ChosenWidth] = {}
    best = _COARSE_GRID[_START]
    for widths, margin, patience in (
        (_COARSE_GRID[_START:], _CLEARLY_WORSE, 2),
        (_COARSE_GRID[_START - 1 :: -1], 0.0, 1),
    ):
        worse = 0
        for k in widths:
            if found and workers.is_late():
                return best, found
            found[k] = attempt(k)
            best = max(found, key=lambda k: found[k].objective)
            worse = worse + 1 if found[k].objective < found[best].objective - margin else 0
            if worse == patience:
                break
    return best, found
