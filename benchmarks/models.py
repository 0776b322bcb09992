"""The models that are compared, and how one fit is measured."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skordinal.classifiers import SVOR, LogisticAT

from benchmarks.report import number, progress, seconds
from isbor._core.types import FloatArray, IntArray
from isbor.experiments.description.baselines import BoostedTrees
from isbor.metrics import accuracy, log_loss, mean_absolute_error, ranked_probability_score

__all__ = [
    "HEADER",
    "BoostedTrees",
    "Factory",
    "Result",
    "Split",
    "average",
    "compare",
    "kept_vectors",
    "logistic_at",
    "model_rows",
    "svor",
]

Factory: TypeAlias = Callable[[], Any]  # makes an estimator that was never fitted

_WARM_UP_ROWS = 200


def svor(C: float, gamma: float) -> Any:
    """Return skordinal's support vector machine, on standardised rows."""
    return make_pipeline(StandardScaler(), SVOR(C=C, gamma=gamma))


def logistic_at() -> Any:
    """Return the linear model, on standardised rows."""
    return make_pipeline(StandardScaler(), LogisticAT())


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to fit, and others to judge by."""

    X: FloatArray
    y: IntArray
    X_test: FloatArray
    y_test: IntArray

    @classmethod
    def of(cls, X: FloatArray, y: IntArray, n_train: int, seed: int) -> "Split":
        """Return a random split of a table."""
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        return cls(X[train], y[train], X[test], y[test])


@dataclass(frozen=True, slots=True)
class Result:
    """Quality on the test rows and time of one fit; NaN for what a model does not have."""

    mae: float = np.nan
    accuracy: float = np.nan
    rps: float = np.nan
    log_loss: float = np.nan
    vectors: float = np.nan
    seconds: float = np.nan

    def cells(self) -> list[str]:
        """Return the fields as text, in the order of `HEADER`."""
        scores = [number(score) for score in (self.mae, self.accuracy, self.rps, self.log_loss)]
        return [*scores, number(self.vectors, 1), seconds(self.seconds)]


HEADER = ("model", "MAE", "accuracy", "RPS", "log loss", "vectors", "seconds (median)")


def average(results: Sequence[Result]) -> Result:
    """Return the mean of each field, and of the seconds the median: one disturbed fit can take minutes."""
    mean = Result(*np.mean([astuple(result) for result in results], axis=0).tolist())
    return replace(mean, seconds=float(np.median([result.seconds for result in results])))


def model_rows(results: Mapping[str, Sequence[Result]]) -> list[list[str]]:
    """Return a row of cells for each model: the average of its results."""
    return [[name, *average(of_model).cells()] for name, of_model in results.items() if of_model]


def compare(
    models: Mapping[str, Factory], splits: Sequence[Split], *, fits: Mapping[str, int] | None = None
) -> dict[str, list[Result]]:
    """Fit each model to each split; `fits` says which models stop after how many splits.

    The models take turns within a split, so that a disturbance of the machine hits all of them.
    """
    fits = fits or {}
    # The first fit of a process loads libraries and starts threads.
    for make in models.values():
        make().fit(splits[0].X[:_WARM_UP_ROWS], splits[0].y[:_WARM_UP_ROWS])
    results: dict[str, list[Result]] = {name: [] for name in models}
    for number_of_split, split in enumerate(splits):
        for name, make in models.items():
            if number_of_split < fits.get(name, len(splits)):
                result = _evaluate(make(), split)
                results[name].append(result)
                progress(f"split {number_of_split}, {name}: MAE {result.mae:.4f}, {result.seconds:.2f} s")
    return results


def _evaluate(model: Any, split: Split) -> Result:
    """Fit the model and measure it."""
    start = time.perf_counter()
    model.fit(split.X, split.y)
    elapsed = time.perf_counter() - start
    predicted = model.predict(split.X_test)
    rps = loss = np.nan
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(split.X_test)
        rps = ranked_probability_score(split.y_test, proba, labels=model.classes_)
        loss = log_loss(split.y_test, proba, labels=model.classes_)
    return Result(
        mae=mean_absolute_error(split.y_test, predicted, labels=model.classes_),
        accuracy=accuracy(split.y_test, predicted, labels=model.classes_),
        rps=rps,
        log_loss=loss,
        vectors=kept_vectors(model),
        seconds=elapsed,
    )


def kept_vectors(model: Any) -> float:
    """Return the number of training rows that the fitted model keeps, NaN if it keeps none or all."""
    if hasattr(model, "n_relevance_"):
        return model.n_relevance_
    if hasattr(model, "support_"):
        return len(model.support_)
    last = model[-1] if hasattr(model, "steps") else model
    return np.count_nonzero(last.model_["alpha"]) if isinstance(last, SVOR) else np.nan
