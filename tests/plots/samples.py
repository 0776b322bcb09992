"""A display made by hand, for the tests of what is drawn."""

import numpy as np

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
