"""The basis families that a model can be made from, the simplest first.

======  ===========================================================================================
rbf     rows as centres, one width: the paper's model (`isbor.search.rbf`)
ard     rows as centres, one scale for each feature, shared by all functions (`isbor.search.ard`)
mixed   functions with centres and metrics of their own, an average of searches (`isbor.search.mixed`)
======  ===========================================================================================

A family is a function that fits a model to a training set. To add one: write it in a module of its own, name
it in `Family` (`isbor.search.result`) and here, and say in `isbor.search.selection` when it is worth its
time.
"""

from collections.abc import Sequence
from typing import Protocol

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training import TrainingSet
from isbor.search.ard import fit_ard
from isbor.search.mixed import fit_mixed
from isbor.search.rbf import fit_rbf
from isbor.search.result import Family, SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["FAMILIES", "FitFamily", "fit_families"]


class FitFamily(Protocol):
    """Fits a model of one family to a training set."""

    def __call__(
        self,
        training: TrainingSet,
        settings: SearchSettings,
        stage: Stage,
        workers: Workers,
        callback: Callback | None,
        start: SearchResult | None = None,
    ) -> SearchResult:
        """Return the model and how it was found; what `start` may be, the family says."""


FAMILIES: dict[Family, FitFamily] = {"rbf": fit_rbf, "ard": fit_ard, "mixed": fit_mixed}


def fit_families(
    families: Sequence[Family],
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
    start: SearchResult | None = None,
) -> dict[Family, SearchResult]:
    """Fit models of some families to a training set, the simplest first.

    The shared metric starts from one width. `start` is a result of the only family for some of the rows.
    """
    results: dict[Family, SearchResult] = {}
    for family in families:
        begin = results.get("rbf") if family == "ard" else start
        results[family] = FAMILIES[family](training, settings, stage, workers, callback, begin)
    return results
