"""Small fitted models, with all kinds of content that files have, and what they predict.

``python -m tests.files.samples`` writes the files in tests/files/examples, which later versions must read.
"""

import json
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.linear import OrderedProbit
from isbor.files.formats import FORMAT

EXAMPLES = Path(__file__).parent / "examples"
GRADES = ["low", "middle", "high"]

SYSTEMS = {
    "isbor": ISBOR(classes=GRADES),
    "isbor-dense": ISBOR(n_members=1, classes=GRADES),
    "isbor-streamed": ISBOR(thresholds="varying", effort="fast", max_vectors=20, classes=GRADES),
    "sbor": SBOR(gamma=0.3, classes=GRADES),
    "svor": SVOR(classes=GRADES, class_weight={"low": 2.0, "middle": 1.0, "high": 1.0}),
    "isvor": ISVOR(classes=tuple(GRADES)),
    "gpor": GPOR(gamma=0.3, classes=np.array(GRADES)),
    "kdlor": KDLOR(classes=GRADES),
    "probit": OrderedProbit(classes=GRADES),
}


def grades(n=24, seed=0):
    """Grades of a table with numbers, categories and missing cells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    colour = rng.choice(["red", "blue"], n)
    frame = pd.DataFrame({"size": X[:, 0], "age": np.where(rng.random(n) < 0.2, np.nan, X[:, 1])})
    frame["colour"] = colour
    score = X[:, 0] + (colour == "red") + 0.5 * rng.normal(size=n)
    return frame, np.array(GRADES)[np.digitize(score, [-0.3, 1.0])]


def smooth_grades(n=50, seed=1):
    """Grades that follow a smooth score, which asks for a Gaussian process."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    score = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1])
    return X, np.array(GRADES)[np.digitize(score, [-0.5, 0.5])]


def table_of(name):
    return smooth_grades() if name == "isbor-dense" else grades()


def fitted_anew(name):
    model = clone(SYSTEMS[name]).fit(*table_of(name))
    return model.partial_fit(*grades(16, seed=1)) if name == "isbor-streamed" else model


@cache
def _pickled(name):
    return pickle.dumps(fitted_anew(name))


def fitted(name):
    """A copy of the fitted model, which may be changed."""
    return pickle.loads(_pickled(name))


def predictions(model, X):
    """All that a model says of rows."""
    said = [model.predict(X), model.predict_proba(X), model.predict_log_proba(X), model.decision_function(X)]
    said += [model.latent(X), model.predict(X, loss="zero_one")]
    if hasattr(model, "predict_proba_interval"):
        said += [*model.latent(X, return_std=True), *model.predict_proba_interval(X), model.out_of_range(X)]
        said += [model.noise_scale(X), model.thresholds_at(X)]
    return said


if __name__ == "__main__":
    EXAMPLES.mkdir(exist_ok=True)
    probabilities = {}
    for name in SYSTEMS:
        model = fitted(name)
        model.save(EXAMPLES / f"{name}.format-{FORMAT}.isbor", training_rows=True)
        probabilities[name] = model.predict_proba(table_of(name)[0][:4]).tolist()
    (EXAMPLES / f"probabilities.format-{FORMAT}.json").write_text(json.dumps(probabilities, indent=1) + "\n")
