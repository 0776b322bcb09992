"""Plots of fitted models, in the style of scikit-learn's displays. They need the extra ``plots``.

A display computes its numbers when it is created, keeps them as plain arrays, and draws them in `plot`. So
the numbers are available without a figure, and can be drawn again on other axes. Nothing here imports
matplotlib before something is drawn.

`LatentDisplay`
    The latent score over two features, the predicted classes, and the relevance vectors.
`CalibrationDisplay`
    Predicted cumulative probabilities against observed frequencies.
`RelevanceDisplay`
    How much each feature matters to the model.
`ExplanationDisplay`
    The score of a row among the thresholds, and what each feature contributes to it.
`EffectsDisplay`
    How predictions change along one feature or two.
"""

from isbor.plots.calibration import CalibrationDisplay
from isbor.plots.common import require_matplotlib
from isbor.plots.curves import CalibrationCurve
from isbor.plots.effects import EffectsDisplay
from isbor.plots.explanation import ExplanationDisplay
from isbor.plots.latent import LatentDisplay
from isbor.plots.relevance import RelevanceDisplay

__all__ = [
    "CalibrationCurve",
    "CalibrationDisplay",
    "EffectsDisplay",
    "ExplanationDisplay",
    "LatentDisplay",
    "RelevanceDisplay",
    "require_matplotlib",
]
