"""The basis families, the simplest first.

======  ===========================================================================================
rbf     centred on training rows, one width: the paper's model
ard     centred on training rows, one scale per feature, shared by all functions
mixed   each function has its own centre and metric; averaged over searches
gp      a Gaussian process: a function for each row, with a joint prior of all weights
======  ===========================================================================================

A family is a function that fits a model to a training set. To add one, write it in its own module, add its
name to `Family` (`isbor.search.result`) and to `FAMILIES`, and decide in `isbor.search.selection` for which
data it is tried. All steps: CONTRIBUTING.md.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from isbor._core.parallel import Workers
from isbor._core.trace import Callback, Stage
from isbor.data.training_set import TrainingSet
from isbor.search.families.ard import fit_ard
from isbor.search.families.gp import fit_gp
from isbor.search.families.mixed import fit_mixed
from isbor.search.families.rbf import fit_rbf
from isbor.search.result import Family, SearchResult
from isbor.search.settings import SearchSettings

__all__ = ["FAMILIES", "FitFamily", "Results", "family_tasks", "fit_families"]


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


FAMILIES: dict[Family, FitFamily] = {"rbf": fit_rbf, "ard": fit_ard, "mixed": fit_mixed, "gp": fit_gp}


# Families of one chain are fitted one after the other, because "ard" starts from the result of "rbf". The
# longest begins first, and the one whose searches can share threads before the one whose cannot.
_CHAINS: tuple[tuple[Family, ...], ...] = (("gp",), ("mixed",), ("rbf", "ard"))

Results: TypeAlias = dict[Family, SearchResult]


def family_tasks(
    families: Sequence[Family],
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    callback: Callback | None,
) -> list[Callable[[Workers], Results]]:
    """Return independent tasks that fit one model of each of the `families` to a training set."""

    def fit_one(family: Family, simplest: SearchResult | None, workers: Workers) -> SearchResult:
        return FAMILIES[family](training, settings, stage, workers, callback, simplest)

    def task(chain: Sequence[Family]) -> Callable[[Workers], Results]:
        def fit(workers: Workers) -> Results:
            results: Results = {}
            for family in chain:
                simplest = results.get("rbf")
                results[family] = workers.once(f"{stage} {family}", partial(fit_one, family, simplest))
            return results

        return fit

    chains = ([family for family in chain if family in families] for chain in _CHAINS)
    return [task(chain) for chain in chains if chain]


def fit_families(
    families: Sequence[Family],
    training: TrainingSet,
    settings: SearchSettings,
    stage: Stage,
    workers: Workers,
    callback: Callback | None,
) -> Results:
    """Fit one model of each of the `families` to a training set, the simplest first."""
    results: Results = {}
    tasks = family_tasks(families, training, settings, stage, callback)
    for some in workers.side_by_side(tasks):
        results |= some
    return {family: results[family] for family in families}
