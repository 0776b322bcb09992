"""Plots of fitted models, in the style of scikit-learn's displays. They need the extra ``plots``.

A display computes its numbers when it is created, keeps them as plain arrays, and draws them in `plot`. So
the numbers are available without a figure, and can be drawn again on other axes. Nothing here imports
matplotlib before something is drawn.

`LatentDisplay`
    The latent score over two features, the predicted classes, and the relevance vectors.
`CalibrationDisplay`
    Predicted cumulative probabilities against observed frequencies.
`DiscriminationDisplay`
    How well lower classes are told from higher ones: ROC curves at each threshold.
`OrdinalConfusionDisplay`
    How often each class is predicted as which, and how far off predictions are.
`PredictionSetDisplay`
    How often prediction sets contain the true class, and how large they are.
`TraceDisplay`
    How a fit went: evidence and size, step by step.
`RelevanceDisplay`
    How much each feature matters to the model.
`ExplanationDisplay`
    The score of a row among the thresholds, and what each feature contributes to it.
`EffectsDisplay`
    How predictions change along one feature or two.
"""

from isbor.plots.calibration import CalibrationDisplay
from isbor.plots.common import require_matplotlib
from isbor.plots.confusion import OrdinalConfusionDisplay
from isbor.plots.curves import CalibrationCurve
from isbor.plots.discrimination import DiscriminationDisplay
from isbor.plots.effects import EffectsDisplay
from isbor.plots.explanation import ExplanationDisplay
from isbor.plots.latent import LatentDisplay
from isbor.plots.prediction_sets import PredictionSetDisplay
from isbor.plots.relevance import RelevanceDisplay
from isbor.plots.trace import TraceDisplay

__all__ = [
    "CalibrationCurve",
    "CalibrationDisplay",
    "DiscriminationDisplay",
    "EffectsDisplay",
    "ExplanationDisplay",
    "LatentDisplay",
    "OrdinalConfusionDisplay",
    "PredictionSetDisplay",
    "RelevanceDisplay",
    "TraceDisplay",
    "require_matplotlib",
]
