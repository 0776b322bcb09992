"""The basis family "rbf": functions of one width, centred on training rows; the paper's model."""

from dataclasses import replace

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training_set import TrainingSet
from isbor.data.warps import Preparation
from isbor.model.basis import RowDictionary
from isbor.prediction.ensemble import Ensemble
from isbor.search.recorder import Recorder
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings, Solver
from isbor.search.solvers.batch import solve_batch
from isbor.search.solvers.gram import solve_gram
from isbor.search.solvers.sequential import solve_sequential
from isbor.search.width import choose_width

__all__ = ["fit_rbf"]

_SOLVERS: dict[str, Solver] = {"gram": solve_gram, "sequential": solve_sequential, "batch": solve_batch}


def fit_rbf(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    simplest: SearchResult | None = None,
) -> SearchResult:
    """Choose the width by evidence, unless `gamma` is given, and select functions of that width.

    `simplest` is ignored: the search for the width makes its own start.
    """
    preparation = Preparation.plain(training.scaling)
    prepared = preparation.of_rows(training.rows)
    rows = prepared.in_fewer_dimensions()
    for_solver = settings.for_solver(rows)
    if settings.gamma is None:
        chosen, trials = choose_width(
            rows,
            training.n_varying,
            for_solver,
            workers,
            callback,
            stage="width" if stage == "fit" else stage,
            first=settings.first_gamma,
            roughly=settings.preliminary,
        )
        gamma, earlier = chosen.gamma, chosen.steps
        # The other solvers make their own starting model.
        begin = chosen.model if settings.solver == "gram" else None
    else:
        gamma, earlier, begin, trials = settings.gamma, (), None, ()
    dictionary = RowDictionary(rows, gamma)
    recorder = Recorder(stage, rows.source, callback, earlier)
    model, reason = _SOLVERS[settings.solver](rows, dictionary, begin, for_solver, workers, recorder)
    if rows is not prepared:  # the model was fitted in rotated coordinates with the same distances
        centres = prepared.X[model.functions.origin]
        functions = replace(model.functions, centres=centres, metric=np.full(centres.shape, gamma))
        model = replace(model, functions=functions)
    ensemble = Ensemble.of(preparation, [model], rows.total_weight)
    return SearchResult(("rbf",), ensemble, gamma, recorder.all_steps, recorder.passes, trials, reason)
