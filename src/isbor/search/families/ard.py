"""The basis family "ard": functions centred on training rows that share one scale per feature.

The scales are learned by evidence (automatic relevance determination).
"""

from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step
from isbor.data.training_set import TrainingSet
from isbor.data.warps import Preparation
from isbor.inference.sparse import SparseModel
from isbor.model.basis import RowDictionary
from isbor.prediction.ensemble import Ensemble
from isbor.search.ascent import share_metric
from isbor.search.families.rbf import fit_rbf
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings
from isbor.search.solvers.gram import solve_gram
from isbor.search.starts import refit

__all__ = ["fit_ard"]

# Limits for learning the scales: rows at first and later, rounds of selection and ascent, steps of an ascent.
_FIRST_SCALE_ROWS = 1000
_SCALE_ROWS = 4000
_SCALE_ROUNDS = 4
_SCALE_STEPS = 20
# The model to start from: its rows, and nats that a pass must gain to be followed by another.
_START_ROWS = 1000
_START_TOL = 0.5


def fit_ard(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    simplest: SearchResult | None = None,
) -> SearchResult:
    """Learn the scales on a sample, starting from one width, and select functions with that metric.

    `simplest` is a result of the family "rbf" for the same rows.
    """
    preparation = Preparation.plain(training.scaling)
    rows, group = preparation.of_rows(training.rows), training.scale_groups[preparation.source]
    earlier: tuple[Step, ...] = ()
    n_passes = 0
    if simplest is None:
        # A rough model of some rows suffices for a start, and a guess of the width.
        gamma = settings.first_gamma if settings.gamma is None else settings.gamma
        quick = replace(settings, gamma=gamma, tol=_START_TOL, patience=0, max_vectors=np.inf)
        some = replace(training, rows=training.rows.head(rows.prefix_size(_START_ROWS)))
        simplest = fit_rbf(some, quick, stage, workers, callback)
        earlier, n_passes = simplest.steps, simplest.n_passes
    dictionary = RowDictionary(rows, float(np.asarray(simplest.gamma)))
    for_solver = settings.for_solver(rows)
    recorder = Recorder(stage, rows.source, callback, earlier)
    model = simplest.model.models[0]
    assert isinstance(model, SparseModel)
    for n_rows in (_FIRST_SCALE_ROWS,) if settings.preliminary else (_FIRST_SCALE_ROWS, _SCALE_ROWS):
        sample = rows.head(rows.prefix_size(n_rows))
        on_sample = replace(for_solver, first_rows=len(sample), patience=0, max_vectors=np.inf)
        model = refit(sample, dictionary, model, workers)
        for _ in range(_SCALE_ROUNDS):
            before = model.objective(settings.size_prior)
            model, _ = solve_gram(sample, dictionary, model, on_sample, workers, recorder)
            scaled = share_metric(sample, model, group, _SCALE_STEPS, workers)
            recorder.record_whole("ascent", model, scaled, settings.size_prior)
            if scaled is not model:
                dictionary = RowDictionary(rows, scaled.functions.metric[0])
            model = scaled
            if model.objective(settings.size_prior) - before < 1.0 or workers.is_late():
                break
        if len(sample) == len(rows) or workers.is_late():
            break
    model, reason = solve_gram(rows, dictionary, model, for_solver, workers, recorder)
    metric = np.zeros(len(training.feature))
    metric[preparation.source] = dictionary.gamma
    return SearchResult(
        ("ard",),
        Ensemble.of(preparation, [model], rows.total_weight),
        metric,
        recorder.all_steps,
        n_passes + recorder.passes,
        simplest.width_trials,
        reason,
    )
