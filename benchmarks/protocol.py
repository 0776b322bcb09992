"""The sets, splits and models of the comparison, and how one fit is measured.

ISBOR gets a set as it is. The peers get numbers: categories one-hot, with a column for missing values, and
standardised rows.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skordinal.classifiers import KDLOR, SVOR

from benchmarks.models import BoostedTrees, logistic_at, svor
from benchmarks.report import progress
from benchmarks.results import Key, Measures, Store
from isbor import ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import load_benchmark
from isbor.metrics import log_loss, mean_absolute_error, ranked_probability_score

__all__ = [
    "MODELS",
    "N_SPLITS",
    "PROTOCOLS",
    "SETS",
    "SLOW_SPLITS",
    "DataSet",
    "Model",
    "is_large",
    "load_set",
    "measure_fit",
    "run_splits",
    "split_rows",
    "take_rows",
    "training_rows",
    "tune",
    "tuned_parameters",
]

Parameters: TypeAlias = Mapping[str, float]
Grid: TypeAlias = Sequence[Parameters]

# Rows that the paper trains on.
TRAINING_ROWS = {
    "bs": 468,
    "swd": 750,
    "marketing": 6744,
    "bank": 8142,
    "computer": 8092,
    "calhouse": 20490,
    "census": 22584,
}
SETS = tuple(TRAINING_ROWS)
PROTOCOLS = ("70/30", "paper")
N_SPLITS = 20
SLOW_SPLITS = 5  # of a slow model on a large set, unless more are asked for
LARGE = 5000  # rows

PAPER_VECTORS = {
    "bs": 17,
    "swd": 58,
    "marketing": 51,
    "bank": 44,
    "computer": 30,
    "calhouse": 84,
    "census": 73,
}

_TUNING = "tuning"  # the protocol under which the store keeps tuned parameters
_TUNING_ROWS = 2000
_TUNING_FOLDS = 5
_WIDTHS = tuple(4.0**k for k in range(-3, 2))  # times 1/d

# KDLOR holds 3.1 matrices of rows × rows: 11 GB for the first number. Beyond, it gets the second.
_KDLOR_MOST_ROWS, _KDLOR_FEWER_ROWS = 21_000, 10_000


@dataclass(frozen=True, slots=True)
class DataSet:
    """A set as ISBOR gets it and as its peers get it."""

    name: str
    raw: Any  # array or data frame
    numeric: FloatArray
    y: IntArray

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters to choose by cross-validation, once a set."""

    name: str  # of the model whose choice the store keeps
    make: Callable[[Parameters], Any]
    grid: Callable[[DataSet], Grid]


@dataclass(frozen=True, slots=True)
class Model:
    """A model to compare."""

    name: str  # as printed
    make: Callable[[str, Parameters], Any]  # from a set's name and tuned parameters to an unfitted estimator
    peer: bool = True  # gets the numeric features, and results that no label tells apart
    tuning: Tuning | None = None
    slow: bool = False  # fewer splits of large sets
    forecasts: bool = True  # its probabilities, if any, are meant as such
    rows: Callable[[int], int] = lambda n_train: n_train  # how many of the training rows it can take

    def label(self, label: str) -> str:
        """Return the label its results are stored under: only ISBOR has versions."""
        return "" if self.peer else label

    def n_splits(self, data: DataSet, n_splits: int, slow_splits: int) -> int:
        """Return how many of the splits it is fitted to."""
        return min(n_splits, slow_splits) if self.slow and is_large(data) else n_splits


def _kdlor(parameters: Parameters) -> Any:
    return make_pipeline(StandardScaler(), KDLOR(**parameters))


def _svor_grid(data: DataSet) -> Grid:
    # With C = 1000 a fit to a large set takes hours.
    costs = 10.0 ** np.arange(-1, 3 if is_large(data) else 4)
    return [{"C": float(C), "gamma": gamma} for gamma, C in product(_gammas(data), costs)]


def _kdlor_grid(data: DataSet) -> Grid:
    # KDLOR's own C scales its score and leaves the labels as they are: its ridge u is what matters.
    return [{"u": float(u), "gamma": gamma} for gamma, u in product(_gammas(data), 10.0 ** np.arange(-5, 0))]


def _gammas(data: DataSet) -> list[float]:
    return [width / data.numeric.shape[1] for width in _WIDTHS]


def _kdlor_rows(n_train: int) -> int:
    return n_train if n_train <= _KDLOR_MOST_ROWS else _KDLOR_FEWER_ROWS


_SVOR_TUNING = Tuning("SVOR (skordinal)", lambda parameters: svor(**parameters), _svor_grid)
_KDLOR_TUNING = Tuning("KDLOR (skordinal)", _kdlor, _kdlor_grid)

MODELS = {
    "isbor": Model("ISBOR()", lambda *_: ISBOR(), peer=False),
    "isbor-rbf": Model('ISBOR(basis="rbf")', lambda *_: ISBOR(basis="rbf"), peer=False),
    "isbor-rbf-k": Model(
        'ISBOR(basis="rbf", max_vectors=k)',
        lambda set_name, _: ISBOR(basis="rbf", max_vectors=PAPER_VECTORS[set_name]),
        peer=False,
    ),
    "logistic": Model("LogisticAT (skordinal)", lambda *_: logistic_at()),
    "trees": Model("boosted trees (median)", lambda *_: BoostedTrees(random_state=0)),
    "kdlor": Model(
        "KDLOR (skordinal)",
        lambda _, parameters: _kdlor(parameters),
        tuning=_KDLOR_TUNING,
        slow=True,
        forecasts=False,  # scores, by its own documentation: their scale is arbitrary
        rows=_kdlor_rows,
    ),
    "svor": Model(
        "SVOR (skordinal)",
        lambda _, parameters: svor(**parameters),
        tuning=_SVOR_TUNING,
        slow=True,
    ),
    "svor-10": Model(
        "SVOR (skordinal), C=10",
        lambda _, parameters: svor(C=10, gamma=parameters["gamma"]),
        tuning=_SVOR_TUNING,
        slow=True,
    ),
}
"""By the names of the command line; "svor-10" is for timing only."""


def is_large(data: DataSet) -> bool:
    """Return whether slow models are spared some splits of this set."""
    return len(data) > LARGE


def load_set(name: str) -> DataSet:
    """Load one of the sets of the paper."""
    raw, y = load_benchmark(name, return_X_y=True)
    y = np.asarray(y)
    if name == "marketing":  # codes of categories; the encoder takes missing for one more
        return DataSet(name, raw, OneHotEncoder(sparse_output=False).fit_transform(raw), y)
    return DataSet(name, raw, np.asarray(raw, dtype=np.float64), y)


def training_rows(protocol: str, data: DataSet) -> int:
    """Return how many rows train."""
    return TRAINING_ROWS[data.name] if protocol == "paper" else round(0.7 * len(data))


def split_rows(n_rows: int, n_train: int, split: int) -> tuple[IntArray, IntArray]:
    """Return training and test rows."""
    order = np.random.default_rng(split).permutation(n_rows)
    return order[:n_train], order[n_train:]


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return rows by position, of an array or of a data frame."""
    return getattr(X, "iloc", X)[rows]


def tune(make: Callable[[Parameters], Any], grid: Grid, X: FloatArray, y: IntArray) -> Measures:
    """Return the parameters of least cross-validated MAE, and that MAE.

    The steps of the grid in gamma are wide; half and twice the best are tried at the end.
    """

    def error(parameters: Parameters) -> float:
        try:
            predicted = cross_val_predict(make(parameters), X, y, cv=StratifiedKFold(_TUNING_FOLDS))
        except np.linalg.LinAlgError:  # KDLOR, ridge too small
            return np.inf
        mae = mean_absolute_error(y, predicted, labels=np.unique(y))
        progress(f"  {dict(parameters)}: MAE {mae:.4f}")
        return mae

    errors = [error(parameters) for parameters in grid]
    coarse = grid[int(np.argmin(errors))]
    finer = [{**coarse, "gamma": coarse["gamma"] * factor} for factor in (0.5, 2.0)]
    errors += [error(parameters) for parameters in finer]
    best = int(np.argmin(errors))
    return {**[*grid, *finer][best], "mae": errors[best]}


def tuned_parameters(store: Store, data: DataSet, model: Model) -> Parameters:
    """Return the model's parameters for a set, chosen at the first call and kept in the store.

    They are chosen on training rows of split 0 in both protocols, and serve all splits: a small favour to the
    peers, as some of these rows are test rows of other splits.
    """
    if model.tuning is None:
        return {}
    key = Key(_TUNING, data.name, model.tuning.name)
    if key not in store:
        progress(f"{data.name}: tuning of {model.tuning.name}")
        rows, _ = split_rows(len(data), min(_TUNING_ROWS, training_rows("70/30", data)), 0)
        grid = model.tuning.grid(data)
        store.add(key, tune(model.tuning.make, grid, data.numeric[rows], data.y[rows]))
    parameters = dict(store[key])
    del parameters["mae"]
    return parameters


def measure_fit(
    model: Any, train: tuple[Any, IntArray], test: tuple[Any, IntArray], *, forecasts: bool = True
) -> tuple[Measures, FloatArray | None]:
    """Fit a model and return what is measured, NaN for what it does not have, and its probabilities."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(*train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    X, y = test
    measures = {
        "mae": mean_absolute_error(y, model.predict(X), labels=model.classes_),
        "rps": np.nan,
        "log_loss": np.nan,
        "vectors": _n_vectors(model),
        "seconds": wall,
        "cpu_seconds": cpu,
        "rows": len(train[1]),
    }
    if not (forecasts and hasattr(model, "predict_proba")):
        return measures, None
    proba: FloatArray = model.predict_proba(X)
    measures["rps"] = ranked_probability_score(y, proba, labels=model.classes_)
    measures["log_loss"] = log_loss(y, proba, labels=model.classes_)
    return measures, proba


def run_splits(
    store: Store,
    protocol: str,
    data: DataSet,
    models: Iterable[Model],
    *,
    n_train: int,
    n_splits: int,
    slow_splits: int = SLOW_SPLITS,
    label: str = "",
) -> None:
    """Fit the models to the splits of a set, except where the store has the result.

    They take turns within a split, so that a disturbance of the machine hits all of them.
    """
    able = {model.name: model for model in models}
    for split in range(n_splits):
        for model in list(able.values()):
            key = Key(protocol, data.name, model.name, split, model.label(label))
            if key in store or split >= model.n_splits(data, n_splits, slow_splits):
                continue
            try:
                measures, proba = _fit_split(
                    data, model, tuned_parameters(store, data, model), n_train, split
                )
            except (TypeError, ValueError, MemoryError) as error:
                progress(f"{data.name}: {model.name} is left out: {error}")
                del able[model.name]
                continue
            store.add(key, measures)
            if proba is not None and split == 0:
                store.save_forecast(key, data.y[split_rows(len(data), n_train, split)[1]], proba)
            progress(
                f"{protocol} {data.name} split {split}, {model.name}: "
                f"MAE {measures['mae']:.4f}, {measures['seconds']:.2f} s"
            )


def _fit_split(
    data: DataSet, model: Model, parameters: Parameters, n_train: int, split: int
) -> tuple[Measures, FloatArray | None]:
    estimator = model.make(data.name, parameters)
    X = data.numeric if model.peer else data.raw
    train, test = split_rows(len(data), n_train, split)
    train = train[: model.rows(n_train)]
    return measure_fit(
        estimator,
        (take_rows(X, train), data.y[train]),
        (take_rows(X, test), data.y[test]),
        forecasts=model.forecasts,
    )


def _n_vectors(model: Any) -> float:
    """Return the number of training rows that the fitted model keeps, NaN if it keeps none."""
    model = getattr(model, "best_estimator_", model)
    last = model[-1] if hasattr(model, "steps") else model
    if isinstance(last, SVOR):
        return np.count_nonzero(last.model_["alpha"])
    if isinstance(last, KDLOR):
        return len(last.X_fit_)
    return getattr(last, "n_relevance_", np.nan)
