r"""`DiscriminationDisplay`: how well predictions tell lower classes from higher ones.

At each threshold k, rows are put in order by :math:`P(y > k)`. The ROC curve has, for every cut of this
order, the share of the rows with y > k above the cut (true positives) against that of the rows with y ≤ k
(false positives). The area under it is the probability that of two rows on either side of the threshold the
higher one has the larger :math:`P(y > k)`, ties counting half:

.. math:: A_k = P(p_i > p_j \mid y_i > k \ge y_j) + \tfrac12 P(p_i = p_j \mid y_i > k \ge y_j).

The concordance (C-index) is the same for pairs of rows of any two different classes and the expected rank
:math:`m_i = \sum_k P(y_i > k)`,

.. math:: C = P(m_i > m_j \mid y_i > y_j) + \tfrac12 P(m_i = m_j \mid y_i > y_j),

1 if all pairs are in order and ½ for any order that has nothing to do with the labels. For two classes it is
the area.

All of them depend on the order of the rows alone: neither calibration nor the choice of a label for each row
changes them. They say what the score is worth, and areas say at which thresholds, which neither the mean
absolute error nor a calibration curve does.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.labels import encode_labels
from isbor.metrics.arguments import check_forecast
from isbor.plots.common import COLOUR_MAP, Display, axes_beside, require_matplotlib, shorten
from isbor.plots.order import forecast_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

__all__ = ["DiscriminationDisplay", "concordance"]

_NAME_LENGTH = 20
_SHARE = 0.28  # of the width, that the areas take
_GAP, _CHARACTER = 0.07, 0.0095  # of the width, between curves and areas: at least, and for each character
_STYLES = ("-", (0, (6, 2)), (0, (2, 1.2)), (0, (6, 2, 1.5, 2)))


class DiscriminationDisplay(Display):
    """How well predictions tell lower classes from higher ones: a ROC curve for each threshold, and areas.

    Use `from_estimator` or `from_predictions` to create it, with rows that the model was not fitted to. Each
    curve is about one threshold between classes: the rows above it against those at or below it, in the order
    of the predicted probability of being above. Beside the curves are the areas under them.

    Parameters
    ----------
    curves : sequence of (ndarray, ndarray)
        False and true positive rates of each threshold, lowest first. Empty where no row, or every row, is
        above the threshold.
    areas : ndarray of shape (n_classes - 1,)
        Area under each curve; NaN where there is none.
    classes : sequence of labels
        Classes, lowest first.
    concordance : float
        Share of the pairs of rows of different classes of which the higher one has the larger expected rank.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the curves. This and the following attributes are set by `plot`.
    strip_ : matplotlib Axes
        The axes of the areas, in the right part of `ax_`.
    figure_ : matplotlib Figure
        The figure of both.
    lines_ : list of matplotlib Line2D
        The curves.
    points_ : matplotlib PathCollection
        The areas.
    labels_ : list of matplotlib Text
        The numbers at the areas.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import DiscriminationDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> model = ISBOR(gamma=0.1).fit(X[:300], y[:300])
    >>> display = DiscriminationDisplay.from_estimator(model, X[300:], y[300:])  # doctest: +SKIP
    >>> display.concordance > 0.99  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        *,
        curves: Sequence[tuple[FloatArray, FloatArray]],
        areas: FloatArray,
        classes: Sequence[Any] | LabelArray,
        concordance: float,
    ) -> None:
        self.curves = curves
        self.areas = areas
        self.classes = classes
        self.concordance = concordance

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        classes: Sequence[Any] | LabelArray | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the discrimination of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier or pipeline with `predict_proba` and `classes_`.
        X : array-like of shape (n_samples, n_features)
            Rows, preferably not those that the estimator was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : sequence of labels, default=None
            All labels, lowest first. None takes the order of y if it is an ordered categorical, else that of
            the estimator's `classes_`, which is right for ISBOR. Classifiers of scikit-learn sort strings
            alphabetically: for them, pass the order.
        ax
            As in `from_predictions`.

        Returns
        -------
        DiscriminationDisplay
        """
        require_matplotlib()
        proba, order = forecast_of(estimator, X, y, classes, cls.__name__)
        return cls.from_predictions(y, proba, order, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        *,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the discrimination of predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels, of two classes at least.
        proba : array-like of shape (n_samples, n_classes)
            Predicted probability of each class, lowest class first; rows sum to one.
        classes : sequence of labels, default=None
            The classes of the columns, lowest first. None takes the order of `y_true`, in which every class
            must then occur: numbers ascending, or that of an ordered categorical.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DiscriminationDisplay
        """
        require_matplotlib()
        labels = encode_labels(y_true, classes)
        codes = labels.codes
        table = check_forecast(proba, len(codes), labels.classes, name="proba", order_name="classes")
        if not np.ptp(codes):
            raise ValueError(
                f"All labels are {labels.classes.tolist()[codes[0]]!r}; rows of at least two classes "
                "are needed to say how well they are told apart. Pass more rows."
            )
        above = table[:, :0:-1].cumsum(axis=1)[:, ::-1]  # P(y > k)
        curves, areas = [], []
        for k, score in enumerate(above.T):
            is_above = codes > k
            nothing = np.zeros(0)
            rates = (
                roc_curve(is_above, score)[:2] if is_above.any() and not is_above.all() else (nothing,) * 2
            )
            curves.append(rates)
            areas.append(auc(*rates) if len(rates[0]) else np.nan)
        display = cls(
            curves=curves,
            areas=np.array(areas),
            classes=labels.classes,
            concordance=concordance(codes, above.sum(axis=1)),
        )
        return display.plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 8.6, max(4.6, 1.6 + 0.24 * len(self.areas))

    def _draw(self, ax: "Axes") -> None:
        from matplotlib import colormaps

        colours = list(colormaps[COLOUR_MAP](np.linspace(0.0, 0.85, len(self.areas))))
        ax.plot([0, 1], [0, 1], color="0.35", linestyle=(0, (5, 3)), linewidth=1.0, zorder=1)
        self.lines_: list[Line2D] = [
            ax.plot(*curve, color=colour, linestyle=_STYLES[k % len(_STYLES)], linewidth=1.8)[0]
            for k, (curve, colour) in enumerate(zip(self.curves, colours, strict=True))
        ]
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="share of the lower rows that are called above",
            ylabel="share of the higher rows that are called above",
        )
        ax.grid(color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_title(f"Discrimination: concordance {self.concordance:.3f}", fontsize=11)
        names = [f"y > {shorten(str(label), _NAME_LENGTH)}" for label in self.classes[:-1]]
        self.strip_ = axes_beside(ax, _SHARE, _GAP + _CHARACTER * max(map(len, names)))
        self._draw_areas(self.strip_, colours, names)

    def _draw_areas(self, strip: "Axes", colours: list[Any], names: list[str]) -> None:
        places = np.arange(len(self.areas))
        drawn = np.isfinite(self.areas)
        low = min(0.5, float(np.nanmin(self.areas))) - 0.02
        for place, area, colour in zip(
            places[drawn], self.areas[drawn], np.array(colours)[drawn], strict=True
        ):
            style = _STYLES[place % len(_STYLES)]
            strip.plot([low, area], [place, place], color=colour, linewidth=2.2, linestyle=style)
        self.points_: PathCollection = strip.scatter(
            self.areas[drawn], places[drawn], s=52, c=np.array(colours)[drawn], zorder=3
        )
        self.labels_: list[Text] = [
            strip.text(1.04, place, f"{area:.3f}", va="center", fontsize=9)
            for place, area in zip(places[drawn], self.areas[drawn], strict=True)
        ]
        strip.set_yticks(places, names, parse_math=False)
        strip.tick_params(axis="y", length=0)
        strip.spines[["top", "right", "left"]].set_visible(False)
        strip.set(xlim=(low, 1.18), ylim=(-0.6, len(places) - 0.4), xlabel="area under the curve")
        strip.set_xticks([0.5, 0.75, 1.0], ["0.5", "0.75", "1"])
        strip.set_title("Above each threshold", fontsize=11)


def concordance(codes: IntArray, score: FloatArray) -> float:
    """Return the share of pairs of different classes that the score puts in order; ties count half."""
    of_class = [np.sort(score[codes == k]) for k in range(int(codes.max()) + 1)]
    in_order = pairs = 0.0
    for k, higher in enumerate(of_class[1:], start=1):
        lower = np.sort(np.concatenate(of_class[:k]))
        below = np.searchsorted(lower, higher, "left") + np.searchsorted(lower, higher, "right")
        in_order += 0.5 * below.sum()
        pairs += len(lower) * len(higher)
    return float(in_order / pairs)
