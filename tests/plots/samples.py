"""Displays and results made by hand, for the tests of what is drawn."""

import numpy as np

from isbor._core.trace import Step
from isbor.inspection.effects import Curve, Effects
from isbor.inspection.explanation import Explanation
from isbor.plots import LatentDisplay


def of_bands(classes):
    """A display of the plane x + y in as many bands as there are classes, made by hand."""
    xx, yy = np.meshgrid(np.linspace(0, 1, 100), np.linspace(0, 1, 100))
    return LatentDisplay(
        xx=xx,
        yy=yy,
        score=xx + yy,
        thresholds=2 * np.arange(1, len(classes)) / len(classes),
        classes=np.array(classes),
        vectors=np.empty((0, 2)),
        vectors_name="vectors",
        coef=np.empty(0),
        feature_names=["a", "b"],
        note="Others at their mean: c=3",
    )


def an_explanation(classes, contributions=(0.8, -0.3, 0.1), baseline=-0.1):
    """A row with these contributions of features with long names, and thresholds that are 1 apart."""
    contributions = np.array([contributions])
    score = baseline + contributions.sum(axis=1)
    thresholds = np.arange(len(classes) - 1) - 0.5 * (len(classes) - 2)
    d = contributions.shape[1]
    return Explanation(
        score=score,
        thresholds=thresholds[None],
        classes=np.array(list(classes)),
        predicted=np.array(list(classes))[np.searchsorted(thresholds, score)],
        probabilities=None,
        feature_names=tuple(f"the ${j} feature of this table, in dollars" for j in range(d)),
        values=(tuple(range(d)),),
        baseline=baseline,
        contributions=contributions,
        intercept=0.0,
        functions=None,
        typical=None,
        source=np.zeros(0, int),
    )


def some_effects(classes, *values):
    """Averages that rise along one feature or two."""
    n, r = np.prod([len(some) for some in values]), len(classes)
    score = np.linspace(-1.0, 1.0, n)
    p = np.linspace([1.0, *np.zeros(r - 1)], [*np.zeros(r - 1), 1.0], n)
    names = ("the $9 height of this table, in dollars", "width")[: len(values)]
    draws = None if len(values) == 2 else np.stack([0.9 * p + 0.1 / r, p], axis=1)
    return Effects.of(
        Curve(np.column_stack([score, p]), draws),
        features=names,
        values=values,
        kind="partial",
        classes=np.array(list(classes)),
        thresholds=np.linspace(-0.5, 0.5, r - 1),
        coverage=0.9,
    )


def a_step(kind, log_evidence, *, n_active=3, n_rows=100, stage="fit", run=1):
    """One step of a fit."""
    return Step(kind, 0, 0.0, log_evidence, n_active, float(n_active), 2.0, 1, n_rows, stage, run)
