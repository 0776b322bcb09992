"""The width of the basis functions, by evidence.

For each width on a logarithmic grid a model is fitted to a stratified sample of the rows; the width
with the highest log evidence less the size prior wins. Raw evidence leans to narrow widths with many
functions on small noisy sets, the size prior takes that lean away. The search goes from a wide width to
narrower ones until the objective has clearly turned down, then to wider ones. It is then refined around
its best on a larger sample, each fit starting from the best so far.
"""

from dataclasses import dataclass, replace

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Step
from isbor.data.rows import TrainingRows
from isbor.model.basis import RowDictionary
from isbor.prediction.sparse import SparseModel
from isbor.search.gram import solve_gram
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.starts import refit

__all__ = ["ChosenWidth", "WidthTrial", "choose_width"]

_COARSE_ROWS = 1500
_FINE_ROWS = 4000
# Widths are numbered: γ = 2^(1 + k/2)/d, since squared distances of standardised rows average 2d. The
# coarse grid is every fourth.
_COARSE_GRID = range(-24, 13, 4)
_START = 3
# The search towards narrow widths ends when the objective lies this many nats below the best, twice in a
# row. Towards wide ones, where functions turn into polynomials, it ends as soon as it falls.
_CLEARLY_WORSE = 5.0


@dataclass(frozen=True, slots=True)
class WidthTrial:
    """One width and the model it led to."""

    gamma: float
    log_evidence: float
    objective: float  # log evidence less the size prior
    n_active: int
    n_rows: int  # distinct rows that it was tried on


@dataclass(frozen=True, slots=True)
class ChosenWidth:
    """A width, the model it led to, and the steps that led there."""

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
) -> tuple[ChosenWidth, tuple[WidthTrial, ...]]:
    """Return the best width with a model to start from, and all that was tried.

    `n_features` counts the features that vary.
    """
    trials: list[WidthTrial] = []

    def attempt(sample: TrainingRows, k: int, start: ChosenWidth | None) -> ChosenWidth:
        gamma = 2.0 ** (1 + k / 2) / n_features
        dictionary = RowDictionary(rows, gamma)
        begin = refit(sample, dictionary, start.model, workers) if start else None
        recorder = Recorder("width", rows.source, callback, start.steps if start else ())
        model, _ = solve_gram(sample, dictionary, begin, settings, workers, recorder)
        objective = model.objective(settings.size_prior)
        trials.append(WidthTrial(gamma, model.log_evidence, objective, len(model), len(sample)))
        return ChosenWidth(gamma, model, objective, recorder.all_steps)

    settings = replace(settings, first_rows=len(rows), patience=0)
    sample = rows.head(rows.prefix_size(_COARSE_ROWS))
    found: dict[int, ChosenWidth] = {}
    for widths, margin, patience in (
        (_COARSE_GRID[_START:], _CLEARLY_WORSE, 2),
        (_COARSE_GRID[_START - 1 :: -1], 0.0, 1),
    ):
        worse = 0
        for k in widths:
            found[k] = attempt(sample, k, None)
            best = max(found, key=lambda k: found[k].objective)
            worse = worse + 1 if found[k].objective < found[best].objective - margin else 0
            if worse == patience:
                break

    if len(sample) < len(rows):
        sample = rows.head(rows.prefix_size(_FINE_ROWS))
        found = {best: attempt(sample, best, found[best])}
    # More rows can bear a narrower width, so that way first; each way while the objective rises.
    for step in (2, -2, 1, -1):
        while best + step not in found and _COARSE_GRID[0] <= best + step <= _COARSE_GRID[-1]:
            found[best + step] = attempt(sample, best + step, found[best])
            if found[best + step].objective <= found[best].objective:
                break
            best += step
    return found[best], tuple(trials)
