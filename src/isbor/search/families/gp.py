"""The family "gp": a Gaussian process, with a function for each row.

It is not sparse, and its time grows with the cube of the number of rows. It is tried on small tables, where
it often predicts better: it averages over all weights of all functions instead of choosing a few.
"""

import numpy as np

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage, Step
from isbor.data.training_set import TrainingSet
from isbor.data.warps import Preparation
from isbor.gp.dense import dense_model
from isbor.gp.pooled import PooledRows
from isbor.gp.two_scales import fit_two_scales
from isbor.prediction.ensemble import Ensemble
from isbor.search.result import SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["fit_gp"]


def fit_gp(
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    simplest: SearchResult | None = None,
) -> SearchResult:
    """Learn the parameters of the process by evidence; `simplest` is ignored."""
    preparation = Preparation.plain(training.scaling)
    rows = PooledRows.of(preparation.of_rows(training.rows))
    group = np.unique(training.scale_groups[preparation.source], return_inverse=True)[1]
    steps: list[Step] = []

    def is_late() -> bool:
        workers.check()
        return workers.is_late()

    def report(log_evidence: float, n_rows: int) -> None:
        step = Step(
            kind="ascent",
            row=-1,
            predicted_gain=0.0,
            log_evidence=log_evidence,
            n_active=2 * n_rows,
            cost=0.0,
            size_prior=0.0,
            pass_number=len(steps) + 1,
            n_rows=n_rows,
            stage=stage,
            run=1,
        )
        steps.append(step)
        if callback is not None:
            callback(step)

    fit = fit_two_scales(
        rows,
        group,
        training.n_varying,
        settings.first_process,
        roughly=settings.preliminary,
        is_late=is_late,
        report=report,
    )
    ensemble = Ensemble.of(preparation, [dense_model(rows, fit)], training.rows.total_weight)
    return SearchResult(
        ("gp",), ensemble, gamma=None, steps=tuple(steps), n_passes=fit.n_climbs, process=fit.parameters
    )
