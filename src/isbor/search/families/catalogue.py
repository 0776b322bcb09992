"""The basis families, the simplest first.

======  ===========================================================================================
rbf     centred on training rows, one width: the paper's model
ard     centred on training rows, one scale per feature, shared by all functions
mixed   each function has its own centre and metric; averaged over searches
======  ===========================================================================================

A family is a function that fits a model to a training set. To add one, write it in its own module, add its
name to `Family` (`isbor.search.result`) and to `FAMILIES`, and decide in `isbor.search.selection` for which
data it is tried. All steps: CONTRIBUTING.md.
"""

from collections.abc import Sequence
from typing import Protocol

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training import TrainingSet
from isbor.search.families.ard import fit_ard
from isbor.search.families.mixed import fit_mixed
from isbor.search.families.rbf import fit_rbf
from isbor.search.result import Family, SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["FAMILIES", "FitFamily", "fit_families"]


class FitFamily(Protocol):
    """A function that fits a model of one family to a training set."""

    def __call__(
        self,
        training: TrainingSet,
        settings: SearchSettings,
        stage: Stage,
        workers: Workers,
        callback: Callback | None,
        simplest: SearchResult | None = None,
    ) -> SearchResult:
        """Return the fitted model. `simplest` is a result of "rbf" for the same rows, to start from."""


FAMILIES: dict[Family, FitFamily] = {"rbf": fit_rbf, "ard": fit_ard, "mixed": fit_mixed}


def fit_families(
    families: Sequence[Family],
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
) -> dict[Family, SearchResult]:
    """Fit one model of each of the `families` to a training set, the simplest first.

    "ard" starts from the result of "rbf", if that is among the families.
    """
    results: dict[Family, SearchResult] = {}
    for family in families:
        simplest = results.get("rbf")
        results[family] = FAMILIES[family](training, settings, stage, workers, callback, simplest)
    return results
