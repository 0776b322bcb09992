"""Learning from streams: `partial_fit` beside one fit to all rows, a linear model, and river's forest.

    python -m benchmarks.streams                   # everything
    python -m benchmarks.streams bank drift        # some problems

Each stream is learned in a process of its own. Rows are shuffled (another order: shuffled in another way) or
sorted; the last 30 % of a shuffled set are the test. A ratio has the standard error that its test rows give
it, by paired bootstrap. River is used if it is installed: an adaptive random
forest, row by row, on the first 20,000 rows at most, because it takes about a millisecond for each.
"""

import argparse
import pickle
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.measuring import Cost, in_fresh_process, measured
from benchmarks.report import number, print_machine, print_table, print_target, progress
from isbor import ISBOR
from isbor.datasets import load_benchmark, make_saddle
from isbor.metrics import log_loss, mean_absolute_error

SETS = ("bank", "computer", "calhouse", "census", "marketing")
PROBLEMS = (*SETS, "saddle", "drift")
SIZES = {"saddle": 5000}  # rows of a batch; others: 500
OTHER_SIZES = {"saddle": 20_000}  # others: 2000
N_SADDLE, N_SADDLE_TEST = 500_000, 100_000
RIVER_ROWS = 20_000
RESAMPLES = 1000  # of the bootstrap
NEAR = 2  # batches before and after one whose seconds count


@dataclass(frozen=True)
class Result:
    """What a model reached, and what its calls cost."""

    errors: np.ndarray  # absolute error of each test row
    losses: np.ndarray  # minus the log probability of its label
    seconds: tuple[float, ...]  # of each call
    of_cpu: tuple[float, ...]  # seconds of all threads, which do not depend on what else runs
    growth: float  # megabytes that the peak of memory has grown since the tenth call
    size: tuple[float, float]  # megabytes of the pickled model after the tenth call and the last one

    @property
    def mae(self) -> float:
        """Mean absolute error."""
        return float(self.errors.mean())

    @property
    def log_loss(self) -> float:
        """Mean log loss."""
        return float(self.losses.mean())


NOT_SCORED = np.empty(0)


Table = tuple[Any, np.ndarray, Any, np.ndarray]


def split(problem: str) -> Table:
    """Return training rows and labels in random order, and test rows and labels."""
    if problem == "saddle":
        X, y = make_saddle(N_SADDLE + N_SADDLE_TEST, random_state=0)
        return X[:N_SADDLE], y[:N_SADDLE], X[N_SADDLE:], y[N_SADDLE:]
    X, y = load_benchmark(problem, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: int(0.7 * len(y))], order[int(0.7 * len(y)) :]
    return take(X, train), y[train], take(X, test), y[test]


def take(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def order_of(X: Any, y: np.ndarray, name: str) -> np.ndarray:
    """Return the rows in the order of a variant of the stream."""
    if name == "another order":
        return np.random.default_rng(1).permutation(len(y))
    if name == "sorted by class":
        return np.argsort(y, kind="stable")
    if name == "sorted by a feature":
        column = X.iloc[:, 2].astype(str).to_numpy() if isinstance(X, pd.DataFrame) else X[:, 0]
        return np.argsort(column, kind="stable")
    return np.arange(len(y))


def batches(X: Any, y: np.ndarray, size: int) -> Iterator[tuple[Any, np.ndarray]]:
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        yield take(X, rows), y[rows]


def learned(model: Any, parts: Iterator[tuple[Any, np.ndarray]], classes: list[int]) -> tuple[Any, Result]:
    """Learn batches one after the other; return the model and what that took, without scores."""
    costs: list[Cost] = []
    of_cpu: list[float] = []
    sizes = [0.0, 0.0]
    for k, (X, y) in enumerate(parts):
        begun = time.process_time()
        _, cost = measured(model.partial_fit, X, y, classes)
        of_cpu.append(time.process_time() - begun)
        costs.append(cost)
        if k == 9:
            sizes[0] = len(pickle.dumps(model)) / 1e6
    sizes[1] = len(pickle.dumps(model)) / 1e6
    seconds = tuple(cost.seconds for cost in costs)
    growth = sum(cost.megabytes for cost in costs[10:])
    return model, Result(NOT_SCORED, NOT_SCORED, seconds, tuple(of_cpu), growth, (sizes[0], sizes[1]))


def scored(result: Result, model: Any, X: Any, y: np.ndarray, classes: list[int]) -> Result:
    p = model.predict_proba(X)
    median = np.array(classes)[np.argmax(np.cumsum(p, axis=1) >= 0.5, axis=1)]
    predicted = model.predict(X) if isinstance(model, ISBOR) else median
    of_label = p[np.arange(len(y)), np.searchsorted(classes, y)]
    errors = np.abs(np.searchsorted(classes, predicted) - np.searchsorted(classes, y))
    return replace(result, errors=errors, losses=-np.log(of_label))


def standard_error(one: np.ndarray, other: np.ndarray) -> float:
    """Return the standard error of the ratio of two means over the same rows, by paired bootstrap."""
    random = np.random.default_rng(0)
    drawn = (random.integers(len(one), size=len(one)) for _ in range(RESAMPLES))
    return float(np.std([one[rows].mean() / other[rows].mean() for rows in drawn]))


class Linear:
    """A linear classifier by stochastic gradient descent, on standardised and dummy-coded features."""

    def __init__(self, example: Any) -> None:
        self.scaler, self.model = StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)
        self.columns = pd.get_dummies(example).columns if isinstance(example, pd.DataFrame) else None

    def partial_fit(self, X: Any, y: np.ndarray, classes: list[int]) -> "Linear":
        """Learn a batch."""
        Z = self._encoded(X)
        self.model.partial_fit(self.scaler.partial_fit(Z).transform(Z), y, classes=classes)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        p = self.model.predict_proba(self.scaler.transform(self._encoded(X)))
        return 0.999 * p + 0.001 / p.shape[1]

    def _encoded(self, X: Any) -> np.ndarray:
        if self.columns is None:
            return X
        return pd.get_dummies(X).reindex(columns=self.columns, fill_value=0).to_numpy(float)


class Forest:
    """River's adaptive random forest; a thousandth of its probabilities is spread over all classes."""

    def __init__(self) -> None:
        from river.forest import ARFClassifier

        self.model = ARFClassifier(n_models=10, seed=0)

    def partial_fit(self, X: Any, y: np.ndarray, classes: list[int]) -> "Forest":
        """Learn a batch, row by row."""
        self.classes = classes
        for row, label in zip(_dictionaries(X), y.tolist(), strict=True):
            self.model.learn_one(row, label)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        found = [self.model.predict_proba_one(row) for row in _dictionaries(X)]
        p = np.array([[row.get(k, 0.0) for k in self.classes] for row in found]) + 1e-12
        return 0.999 * p / p.sum(axis=1, keepdims=True) + 0.001 / p.shape[1]


def _dictionaries(X: Any) -> list[dict[Any, Any]]:
    frame = (
        X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    )
    words = frame.select_dtypes(exclude="number").columns  # missing ones are a word for river
    known = {name: frame[name].astype(object).fillna("missing") for name in words}
    return frame.assign(**known).to_dict("records")


def stream(problem: str, variant: str, size: int) -> Result:
    """Learn a stream by `partial_fit`."""
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = split(problem)
    order, classes = order_of(X, y, variant), sorted(set(y.tolist()))
    model, result = learned(ISBOR(), batches(take(X, order), y[order], size), classes)
    return scored(result, model, X_test, y_test, classes)


def fit(problem: str) -> Result:
    """Fit to all rows at once."""
    X, y, X_test, y_test = split(problem)
    model, cost = measured(lambda: ISBOR().fit(X, y))
    size = len(pickle.dumps(model)) / 1e6
    found = Result(NOT_SCORED, NOT_SCORED, (cost.seconds,), (), cost.megabytes, (0.0, size))
    return scored(found, model, X_test, y_test, sorted(set(y.tolist())))


def rival(problem: str, name: str, size: int) -> Result:
    """Learn a stream by another model."""
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = split(problem)
    classes = sorted(set(y.tolist()))
    if name == "river":
        X, y = take(X, slice(RIVER_ROWS)), y[:RIVER_ROWS]
        X_test, y_test = take(X_test, slice(RIVER_ROWS)), y_test[:RIVER_ROWS]
    model: Any = Forest() if name == "river" else Linear(X)
    model, found = learned(model, batches(X, y, size), classes)
    return scored(found, model, X_test, y_test, classes)


def around(seconds: tuple[float, ...], place: int) -> float:
    """Return the median of the seconds of some neighbouring calls."""
    return float(np.median(seconds[max(place - NEAR, 0) : place + NEAR + 1]))


def row(name: str, variant: str, found: Result, whole: Result) -> list[str]:
    cells = [name, variant, number(found.mae, 4), number(found.mae / whole.mae, 3)]
    cells += [number(found.log_loss, 4), number(found.log_loss / whole.log_loss, 3)]
    n = len(found.seconds)
    cells.append(number(sum(found.seconds), 1))
    for seconds in (found.seconds, found.of_cpu):
        cells.append(number(around(seconds, 9), 2) if n > 14 else "")
        cells.append(number(around(seconds, n - 1 - NEAR), 2) if n > 14 else "")
    return [*cells, number(found.growth, 0), *(number(size, 2) if size else "" for size in found.size)]


HEADER = ["stream", "", "MAE", "/ fit", "log loss", "/ fit", "seconds", "tenth call", "last"]
HEADER += ["CPU, tenth", "last", "MB since the tenth", "MB pickled, tenth", "last"]


def compare(problem: str) -> tuple[list[list[str]], list[tuple[str, float, float, int]]]:
    """Return the rows of a table, and what is to be met."""
    size, other = SIZES.get(problem, 500), OTHER_SIZES.get(problem, 2000)
    whole = in_fresh_process(fit, problem)
    rows, targets = [row(problem, "one fit", whole, whole)], []
    plain: Result | None = None
    for variant, batch, limit in (
        ("shuffled", size, 1.03),
        ("another order", size, 1.02),
        ("larger batches", other, 1.02),
        ("sorted by class", size, 1.10),
        ("sorted by a feature", size, 1.10),
    ):
        found = in_fresh_process(stream, problem, variant, batch)
        rows.append(row(problem, f"{variant}, {batch}", found, whole))
        beside = whole if plain is None or limit > 1.05 else plain
        for what, one, another in (
            ("MAE", found.errors, beside.errors),
            ("log loss", found.losses, beside.losses),
        ):
            error = number(standard_error(one, another), 3)
            name = f"{problem}, {variant}: {what} beside {_of(beside, whole)} (standard error {error})"
            targets.append((name, float(one.mean() / another.mean()), limit, 3))
        if plain is None:
            plain = found
            last = len(found.seconds) - 1 - NEAR
            for seconds, what in ((found.seconds, "seconds"), (found.of_cpu, "CPU seconds")):
                slower = around(seconds, last) / around(seconds, 9)
                targets.append((f"{problem}: {what} of the last call beside the tenth", slower, 1.5, 2))
        progress(" ".join(rows[-1]))
    for name in ("linear", "river") if find_spec("river") else ("linear",):
        rows.append(row(problem, name, in_fresh_process(rival, problem, name, size), whole))
        progress(" ".join(rows[-1]))
    return rows, targets


def _of(beside: Result, whole: Result) -> str:
    return "one fit" if beside is whole else "the shuffled stream"


CUTS = ([-1.5, -0.4, 0.4, 1.5], [-0.8, 0.3, 1.1, 2.2])
DRIFT_BATCHES, DRIFT_SIZE = 20, 500


def drifting(n: int, cuts: list[float], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 5))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    return X, np.digitize(f + 0.5 * rng.normal(size=n), cuts)


def drift(half_life: float | None) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return scores before and after batches of moved thresholds, and those of a fit to these batches."""
    rng = np.random.default_rng(0)
    model = ISBOR(classes=[0, 1, 2, 3, 4], half_life=half_life)
    X_test, y_test = drifting(20_000, CUTS[1], rng)
    for _ in range(DRIFT_BATCHES):
        model.partial_fit(*drifting(DRIFT_SIZE, CUTS[0], rng))
    scores, seen = [_scores(model, X_test, y_test)], []
    for _ in range(DRIFT_BATCHES):
        seen.append(drifting(DRIFT_SIZE, CUTS[1], rng))
        model.partial_fit(*seen[-1])
        scores.append(_scores(model, X_test, y_test))
    fresh = ISBOR().fit(np.concatenate([X for X, _ in seen]), np.concatenate([y for _, y in seen]))
    return scores, _scores(fresh, X_test, y_test)


def _scores(model: ISBOR, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    return mean_absolute_error(y, model.predict(X)), log_loss(
        y, model.predict_proba(X), labels=model.classes_
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help=", ".join(PROBLEMS))
    problems = parser.parse_args().problems
    targets: list[tuple[str, float, float, int]] = []
    rows: list[list[str]] = []
    for problem in problems:
        if problem != "drift":
            found, wanted = compare(problem)
            rows += found
            targets += wanted
    if rows:
        print_table("Streams", HEADER, rows, n_text=2)
    if "drift" in problems:
        shown = (0, 1, 2, 5, 10, 20)
        lines = []
        for half_life in (None, 5000.0, 2000.0, 1000.0):
            scores, fresh = in_fresh_process(drift, half_life)
            lines.append([str(half_life), *(number(scores[k][1], 3) for k in shown), number(fresh[1], 3)])
            if half_life is not None:
                for k, what in enumerate(("MAE", "log loss")):
                    name = f"drift, half-life {half_life:.0f}: {what} after 20 batches beside a fresh fit"
                    targets.append((name, scores[-1][k] / fresh[k], 1.10, 3))
        header = ["half-life", *(f"after {k}" for k in shown), "fresh fit"]
        print_table("Log loss after so many batches of 500 rows of moved thresholds", header, lines)
    print()
    for what, value, limit, digits in targets:
        print_target(what, value, limit, digits)
    print_machine()


if __name__ == "__main__":
    main()
