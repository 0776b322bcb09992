"""Models by import path, the catalogue, and the baselines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor import ISBOR, ISVOR
from isbor.datasets import make_saddle
from isbor.experiments import CATALOGUE, Model
from isbor.experiments.description.baselines import BoostedTrees
from isbor.experiments.description.models import catalogue_model, make_estimator


@pytest.mark.parametrize("name", CATALOGUE)
def test_models_of_the_catalogue_can_be_made(name):
    model = catalogue_model(name)
    estimator = make_estimator(model.estimator, model.parameters)
    assert {**estimator.get_params(), **model.parameters} == estimator.get_params()
    searched = make_estimator(model.searched_by or model.estimator, model.search_parameters).get_params()
    assert model.grid.keys() <= searched.keys()


def test_an_estimator_gets_its_parameters_and_one_thread():
    model = make_estimator("isbor:ISVOR", {"C": np.float64(3.0), "gamma": 0.5})
    assert (type(model), type(model.C)) == (ISVOR, float)
    assert (model.C, model.gamma, model.n_jobs) == (3.0, 0.5, 1)
    assert make_estimator("isbor:ISBOR", {"n_jobs": 3}).get_params() == ISBOR(n_jobs=3).get_params()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_estimator("isbor", {}), "The estimator is 'isbor'; an import path such as"),
        (lambda: make_estimator("no_such_package:Model", {}), "cannot be imported .*install its package"),
        (lambda: make_estimator("math:pi", {}), "'math:pi' has no method fit"),
        (lambda: make_estimator("isbor:SVOR", {"cost": 1}), "no parameter 'cost'; its parameters are C, con"),
        (lambda: make_estimator("sklearn.multiclass:OneVsRestClassifier", {}), "cannot be created with"),
        (lambda: catalogue_model("isvr"), "There is no model 'isvr'. Did you mean 'isvor'. The models are"),
        (lambda: Model("m", "M", "a:B", grid={"kernel": "rbf"}), "of the model 'm' is 'rbf'"),
        (
            lambda: Model("m", "M", "isbor:SVOR", {"kernel": lambda x, y: x @ y.T}),
            "The parameter 'kernel' of the model 'm' is <function .*; numbers, strings, booleans and lists",
        ),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_made_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_boosted_trees_predict_the_median():
    X, y = make_saddle(300, random_state=0)
    labels = np.array([10, 20, 30, 40, 50])
    trees = BoostedTrees(max_iter=5, random_state=0).fit(X, labels[y - 1])
    predicted, proba = trees.predict(X), trees.predict_proba(X)
    by_hand = [next(k for k in range(5) if row[: k + 1].sum() >= 0.5) for row in proba]
    assert_array_equal(predicted, labels[by_hand])
    # The median has the smallest expected absolute error; the mode need not have it.
    expected = np.abs(np.arange(5)[:, None] - np.arange(5)) @ proba.T
    assert_allclose(expected[by_hand, np.arange(300)], expected.min(axis=0))
    assert np.any(np.argmax(proba, axis=1) != by_hand)
