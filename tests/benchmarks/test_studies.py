"""The benchmarks' own estimators and sets, as an experiment runs them."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import studies
from benchmarks.other_sets import SETS, load_set
from isbor.datasets import make_saddle, saddle_labels
from isbor.experiments import Holdout, Job, Saddle, Search, Task
from isbor.experiments.running.measure import measure

skordinal = pytest.importorskip("skordinal.classifiers")
TASK = Task("saddle", "Saddle", Saddle(400), Holdout(200))


@pytest.mark.parametrize("module", sorted(path.stem for path in Path(studies.__file__).parent.glob("*.py")))
def test_every_benchmark_can_be_imported(module):
    importlib.import_module(f"benchmarks.{module}")


def rows():
    X, y = make_saddle(400, random_state=0)
    train, test = TASK.scheme.split(y, 0, 0)
    return X[train], y[train], X[test], y[test]


def mae_of(machine):
    """Return the error of a machine of skordinal's on standardised rows, and the fitted machine."""
    X, y, X_test, y_test = rows()
    fitted = make_pipeline(StandardScaler(), machine).fit(X, y)
    return np.mean(np.abs(fitted.predict(X_test) - y_test)), fitted[-1]


def test_machines_are_those_of_skordinal_with_a_width_for_two_columns():
    model = next(model for model in studies.SADDLE.models if model.name == "svor-skordinal")
    record = measure(Job(model, TASK, 0, 0, Search()))
    mae, machine = mae_of(skordinal.SVOR(C=100, gamma=1.0))
    assert record.metrics["mae"] == pytest.approx(mae, abs=1e-12)
    assert record.vectors == np.count_nonzero(machine.model_["alpha"])
    assert "log_loss" not in record.metrics


def test_a_machine_is_tuned_on_each_split():
    record = measure(Job(studies.KDLOR, TASK, 0, 0, Search(folds=3, rows_at_most=100)))
    chosen = record.parameters
    mae, _ = mae_of(skordinal.KDLOR(u=chosen["u"], gamma=chosen["width"] / 2))
    assert record.metrics["mae"] == pytest.approx(mae, abs=1e-12)
    assert record.vectors == 200
    assert "log_loss" not in record.metrics


def test_the_true_function_of_the_saddle():
    record = measure(Job(studies.SADDLE.models[0], TASK, 0, 0, Search()))
    _, y, score = make_saddle(400, random_state=0, return_score=True)
    test = TASK.scheme.split(y, 0, 0)[1]
    assert record.metrics["mae"] == np.mean(np.abs(saddle_labels(score[test]) - y[test]))


@pytest.mark.parametrize("name", SETS)
def test_other_sets_are_small_tables_of_ordered_classes(name):
    try:
        X, y = load_set(name)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    assert 150 <= len(y) <= 2000
    assert len(X) == len(y)
    assert np.isfinite(X).all()
    task = next(task for task in studies.OTHER_SETS.tasks if task.name == name)
    assert_array_equal(task.load().classes, np.unique(y))
