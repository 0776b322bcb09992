"""The width of the basis functions, by evidence.

For each width on a logarithmic grid a model is fitted to a stratified sample of the rows; the width
with the highest log evidence less the size prior wins. Raw evidence leans to narrow widths with many
functions on small noisy sets, the size prior takes that lean away. The search goes from a wide width to
narrower ones until the objective has clearly turned down, then to wider ones. It is then refined around
its best on a larger sample, each fit starting from the best so far.
"""

from dataclasses import dataclass, replace

from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.inputs import TrainingRows
from isbor.solvers.gram import GramSettings, solve_gram
from isbor.solvers.model import Recorder, SparseModel, initial_model, resettle
from isbor.trace import Callback

__all__ = ["WidthTrial", "choose_width"]

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


def choose_width(
    rows: TrainingRows,
    n_features: int,
    settings: GramSettings,
    workers: Workers,
    callback: Callback | None = None,
) -> tuple[float, SparseModel, tuple[WidthTrial, ...]]:
    """Return the best width, a model to start from at that width, and all that was tried."""
    trials: list[WidthTrial] = []

    def gamma_of(k: int) -> float:
        return float(2.0 ** (1 + k / 2) / n_features)

    def attempt(sample: TrainingRows, k: int, start: SparseModel | None) -> tuple[float, SparseModel]:
        gamma = gamma_of(k)
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
    found: dict[int, tuple[float, SparseModel]] = {}
    for widths, margin, patience in (
        (_COARSE_GRID[_START:], _CLEARLY_WORSE, 2),
        (_COARSE_GRID[_START - 1 :: -1], 0.0, 1),
    ):
        worse = 0
        for k in widths:
            found[k] = attempt(sample, k, None)
            best = max(found, key=lambda k: found[k][0])
            worse = worse + 1 if found[k][0] < found[best][0] - margin else 0
            if worse == patience:
                break

    sample = rows.head(_FINE_ROWS)
    if len(sample) > _COARSE_ROWS:
        found = {best: attempt(sample, best, found[best][1])}
    # More rows can bear a narrower width, so that way first; each way while the objective rises.
    for step in (2, -2, 1, -1):
        while best + step not in found and _COARSE_GRID[0] <= best + step <= _COARSE_GRID[-1]:
            found[best + step] = attempt(sample, best + step, found[best][1])
            if found[best + step][0] <= found[best][0]:
                break
            best += step
    return gamma_of(best), found[best][1], tuple(trials)
