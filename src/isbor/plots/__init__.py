"""Pictures of fitted models, in the manner of scikit-learn's displays. They need the extra ``plots``.

A display computes what it shows when it is made, holds it as plain arrays, and draws it in `plot`. So the
numbers can be looked at without a picture, and drawn again on other axes.

`LatentDisplay`
    The latent score over two features, the classes it is cut into, and the relevance vectors.
`CalibrationDisplay`
    Whether what has probability p happens with frequency p, at each threshold between classes.
`RelevanceDisplay`
    How much each feature matters to the model.
"""

from isbor.plots.calibration import CalibrationDisplay
from isbor.plots.common import require_matplotlib
from isbor.plots.curves import CalibrationCurve
from isbor.plots.latent import LatentDisplay
from isbor.plots.relevance import RelevanceDisplay

__all__ = [
    "CalibrationCurve",
    "CalibrationDisplay",
    "LatentDisplay",
    "RelevanceDisplay",
    "require_matplotlib",
]
