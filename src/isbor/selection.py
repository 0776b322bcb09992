"""The width of the basis functions, by evidence.

For each width on a logarithmic grid a model is fitted to a stratified sample of the rows; the width
with the highest log evidence less the size prior wins. Raw evidence leans to narrow widths with many
functions on small noisy sets, the size prior takes that lean away. The grid goes from wide to narrow
and ends when the objective has clearly turned down, because narrow widths cost most and matter
least. It is then refined around its best on a larger sample, each fit starting from the best so far.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.inputs import TrainingRows
from isbor.solvers.gram import GramSettings, solve_gram
from isbor.solvers.model import Recorder, SparseModel, initial_model, resettle
from isbor.trace import Callback

__all__ = ["WidthTrial", "choose_width"]

_COARSE_ROWS = 1500
_FINE_ROWS = 4000
# Widths in units of 1/(number of features): squared distances of standardised rows average 2d.
_COARSE_GRID = 2.0 * 4.0 ** np.arange(-6, 4)
# The coarse search ends when the objective lies this many nats below the best, twice in a row.
_CLEARLY_WORSE = 5.0


@dataclass(frozen=True, slots=True)
class WidthTrial:
    """One width and the model it led to."""

    gamma: float
    log_evidence: float
    objective: float  # log evidence less the size prior
    n_active: int
    n_rows: int  # distinct rows that it was tried on


def choose_width(
    rows: TrainingRows,
    n_features: int,
    settings: GramSettings,
    workers: Workers,
    callback: Callback | None = None,
) -> tuple[float, SparseModel, tuple[WidthTrial, ...]]:
    """Return the best width, a model to start from at that width, and all that was tried."""
    trials: list[WidthTrial] = []

    def attempt(sample: TrainingRows, gamma: float, start: SparseModel | None) -> tuple[float, SparseModel]:
        dictionary = RowDictionary(rows, gamma)
        if start is None:
            model = initial_model(sample, dictionary, workers)
        else:
            model = resettle(sample, dictionary, start, workers)
        recorder = Recorder("width", callback)
        model, _ = solve_gram(sample, dictionary, model, settings, workers, recorder)
        objective = model.objective(settings.size_prior)
        trials.append(WidthTrial(gamma, model.log_evidence, objective, len(model.chosen), len(sample)))
        return objective, model

    settings = replace(settings, first_rows=len(rows), patience=0)
    sample = rows.head(_COARSE_ROWS)
    found: dict[float, tuple[float, SparseModel]] = {}
    worse = 0
    grid = _COARSE_GRID / n_features
    for gamma in grid.tolist():
        found[gamma] = attempt(sample, gamma, None)
        best = max(found, key=lambda width: found[width][0])
        worse = worse + 1 if found[gamma][0] < found[best][0] - _CLEARLY_WORSE else 0
        if worse == 2:
            break

    sample = rows.head(_FINE_ROWS)
    if len(sample) > _COARSE_ROWS:
        found = {best: attempt(sample, best, found[best][1])}
    # More rows can bear a narrower width, so that way first; each way while the objective rises.
    for factor in (2.0, 0.5, np.sqrt(2.0), np.sqrt(0.5)):
        while best * factor not in found and grid[0] <= best * factor <= grid[-1]:
            found[best * factor] = attempt(sample, best * factor, found[best][1])
            if found[best * factor][0] <= found[best][0]:
                break
            best *= factor
    return best, found[best][1], tuple(trials)
