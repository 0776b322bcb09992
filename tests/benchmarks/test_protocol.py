"""The comparison's bookkeeping: a table is only as good as the results it is made from."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.results import MEASURES, Key, Paired, Store, mean_of, paired
from isbor.experiments import load_study
from isbor.experiments.running.measure import measure
from isbor.experiments.running.record_files import record_lines

KEY = Key("paper", "bs", "ISBOR()", split=3, label="new")


def test_results_are_found_again_by_a_new_store(tmp_path):
    Store(tmp_path).add(KEY, {"mae": 0.25, "vectors": np.int64(7), "rps": np.nan})
    found = Store(tmp_path)
    assert KEY in found
    assert_allclose([found[KEY][name] for name in ("mae", "vectors", "rps")], [0.25, 7, np.nan])
    assert found.group("paper", "bs", "ISBOR()", "new").keys() == {3}
    assert found.group("paper", "bs", "ISBOR()") == {}


def test_a_line_cut_off_costs_one_result_only(tmp_path):
    other = Key("paper", "bs", "SVOR")
    Store(tmp_path).add(KEY, {"mae": 0.25})
    file = tmp_path / "fits.jsonl"
    file.write_text(file.read_text().rstrip("\n")[:-4])
    Store(tmp_path).add(other, {"mae": 0.5})
    found = Store(tmp_path)
    assert KEY not in found
    assert found[other] == {"mae": 0.5}


def test_dropped_results_stay_dropped_until_made_again(tmp_path):
    store = Store(tmp_path)
    other = Key("paper", "bs", "SVOR")
    store.add(KEY, {"mae": 0.25})
    store.add(other, {"mae": 0.5})
    store.drop(lambda key: key.model == "ISBOR()")
    assert KEY not in store
    assert KEY not in Store(tmp_path)
    assert other in Store(tmp_path)
    store.add(KEY, {"mae": 0.75})
    assert Store(tmp_path)[KEY] == {"mae": 0.75}


def test_only_common_splits_with_the_measure_are_compared():
    ours = {0: {"mae": 0.1, "rps": 1.0}, 1: {"mae": 0.2, "rps": 1.0}, 2: {"mae": 9.0, "rps": 1.0}}
    theirs = {0: {"mae": 0.4, "rps": np.nan}, 1: {"mae": 0.3, "rps": np.nan}, 5: {"mae": 0.0, "rps": np.nan}}
    difference = paired(ours, theirs, "mae")
    assert_allclose([difference.mean, difference.error, difference.n_splits], [-0.2, 0.1, 2])
    assert difference.outcome == "win"
    assert paired(theirs, ours, "mae").outcome == "loss"
    assert paired(ours, theirs, "rps") is None
    assert_allclose(mean_of(theirs, "mae"), 0.7 / 3)


@pytest.mark.parametrize(
    ("mean", "error", "outcome"),
    [(0.1, 0.1, "draw"), (-0.1, 0.2, "draw"), (0.1, np.nan, "–"), (0, 0, "draw")],
)
def test_within_one_standard_error_nothing_is_won(mean, error, outcome):
    assert Paired(mean, error, 2).outcome == outcome


@pytest.fixture
def protocol():
    pytest.importorskip("skordinal")
    from benchmarks import protocol

    return protocol


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_rows_are_taken_by_position(protocol, kind):
    X = np.arange(12.0).reshape(6, 2)
    rows = np.array([4, 0, 5])
    assert_array_equal(np.asarray(protocol.take_rows(kind(X), rows)), X[rows])


def test_parameters_are_tuned_on_rows_that_train_in_both_protocols(protocol):
    y = np.zeros(625, dtype=np.intp)
    data = protocol.DataSet("bs", y, y, y)
    few, many = sorted(protocol.training_rows(name, data) for name in protocol.PROTOCOLS)
    train, test = protocol.split_rows(len(data), many, 0)
    assert set(protocol.split_rows(len(data), few, 0)[0]) <= set(train)
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(625))


class _Majority:
    """Predicts the most frequent label; counts the fits of all."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        self.classes_, counts = np.unique(y, return_counts=True)
        self._share = counts / counts.sum()
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[self._share.argmax()])

    def predict_proba(self, X):
        return np.tile(self._share, (len(X), 1))


def test_a_run_fits_only_what_the_store_does_not_have(protocol, tmp_path, monkeypatch):
    monkeypatch.setattr(_Majority, "fits", 0)
    y = np.tile([1, 2, 3, 3], 25)
    X = np.arange(100.0)[:, np.newaxis]
    data = protocol.DataSet("bs", X, X, y)
    ours = protocol.Model("ours", lambda *_: _Majority(), peer=False)
    peer = protocol.Model("peer", lambda *_: _Majority())
    broken = protocol.Model("broken", lambda *_: _Majority(unknown=1))

    def run(n_splits, label):
        models = [broken, ours, peer]
        store = Store(tmp_path)
        protocol.run_splits(store, "70/30", data, models, n_train=70, n_splits=n_splits, label=label)
        return store

    run(2, "")
    assert _Majority.fits == 4
    run(3, "")
    assert _Majority.fits == 6
    store = run(3, "new")  # a new version of ours only
    assert _Majority.fits == 9
    assert store.group("70/30", "bs", "broken") == {}
    test = protocol.split_rows(100, 70, 0)[1]
    assert_allclose(store.group("70/30", "bs", "peer")[0]["mae"], np.mean(3 - y[test]))
    saved = np.load(tmp_path / "70-30_bs_ours_split0_new.npz")
    assert_array_equal(saved["y_test"], y[test])
    assert saved["proba"].shape == (30, 3)


class _Cut(ClassifierMixin, BaseEstimator):
    """Cuts the only feature at gamma."""

    def __init__(self, gamma):
        self.gamma = gamma

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return 1 + (X[:, 0] > self.gamma)


def test_tuning_looks_between_the_widths_of_the_grid(protocol):
    X = np.tile(np.arange(10.0), 5)[:, np.newaxis]
    grid = [{"gamma": 0.25}, {"gamma": 1.0}, {"gamma": 4.0}]
    found = protocol.tune(lambda parameters: _Cut(**parameters), grid, X, 1 + (X[:, 0] > 2))
    assert found == {"gamma": 2.0, "mae": 0.0}


def test_fits_of_the_study_stand_for_those_of_the_protocol(protocol, tmp_path):
    from benchmarks.records import borrow_records

    study = replace(load_study("benchmarks").only(["isbor-evidence", "gpor"], ["bs"]), splits=1)
    kept, other = study.jobs()
    records = {kept.key: measure(kept), other.key: replace(measure(kept), model="gpor")}
    file = tmp_path / "records.jsonl"
    file.write_text(record_lines(records))
    data, ours = protocol.load_set("bs"), protocol.MODELS["isbor-rbf"]
    fitted, taken = Store(tmp_path / "fitted"), Store(tmp_path / "taken")
    protocol.run_splits(fitted, "paper", data, [ours], n_train=468, n_splits=1)
    borrow_records(taken, file, label="")
    (expected,), (found,) = (store.group("paper", "bs", ours.name).values() for store in (fitted, taken))
    for name in (*MEASURES, "vectors", "rows"):
        assert_allclose(found[name], expected[name], rtol=1e-9)
    assert not taken.directory.exists()
    borrow_records(fitted, file, label="")
    assert fitted.group("paper", "bs", ours.name) == {0: expected}
