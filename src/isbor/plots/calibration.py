"""`CalibrationDisplay`: predicted cumulative probabilities against observed frequencies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from isbor._core.types import LabelArray
from isbor.data.labels import encode_labels
from isbor.plots.common import (
    COLOUR,
    COLOUR_MAP,
    Display,
    axes_below,
    check_count,
    check_share,
    require_matplotlib,
)
from isbor.plots.curves import HISTOGRAM_BARS, CalibrationCurve, Forecast, mean_absolute_gap
from isbor.plots.order import forecast_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CalibrationDisplay"]

Thresholds: TypeAlias = Literal["auto", "each", "pooled"]

_MOST_CLASSES = 8  # with more, one curve per threshold is not legible
_FEW_CURVES = 4  # with more, the legend is set smaller
_STRIP_SHARE = 0.17  # of the height of the axes, and the gap above it
_GAP_SHARE = 0.035
_MARKERS = "osD^vPX"


class CalibrationDisplay(Display):
    """Predicted cumulative probabilities against observed frequencies, with confidence intervals.

    Use `from_estimator` or `from_predictions` to create it, with rows that the model was not fitted to. Each
    point is a bin of rows: the mean predicted probability, and the observed frequency. For a calibrated model
    they agree: points lie on the diagonal. A curve flatter than the diagonal means that the model is
    overconfident, a steeper one that it is underconfident. The histogram below shows how often each
    probability is predicted.

    Parameters
    ----------
    curves : sequence of CalibrationCurve
        One per threshold, lowest first, or a single one for all thresholds.
    calibration_error : float
        Mean of |predicted - observed| over the bins of all thresholds, weighted by their counts. It is
        computed from one curve per threshold, even if the plot pools them. By chance it is positive even for
        perfect forecasts: up to about 0.4/√m with m rows per bin.
    confidence : float
        Coverage of the intervals.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the curves. This and the following attributes are set by `plot`.
    strip_ : matplotlib Axes
        The axes of the histogram, at the lower end of `ax_`.
    figure_ : matplotlib Figure
        The figure of both.
    lines_ : list of matplotlib ErrorbarContainer
        The curves with their intervals.
    diagonal_ : matplotlib Line2D
        Perfect calibration.
    legend_ : matplotlib Legend
        The legend.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import CalibrationDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> X_test, y_test = make_saddle(500, random_state=1)
    >>> model = ISBOR(gamma=0.1).fit(X, y)
    >>> display = CalibrationDisplay.from_estimator(model, X_test, y_test)  # doctest: +SKIP
    >>> display.calibration_error < 0.02  # doctest: +SKIP
    True
    >>> display.figure_.savefig("calibration.png")  # doctest: +SKIP
    """

    def __init__(
        self, *, curves: Sequence[CalibrationCurve], calibration_error: float, confidence: float = 0.95
    ) -> None:
        self.curves = curves
        self.calibration_error = calibration_error
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        classes: Sequence[Any] | LabelArray | None = None,
        thresholds: Thresholds = "auto",
        n_bins: int = 10,
        confidence: float = 0.95,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the calibration of a fitted classifier.

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
        thresholds, n_bins, confidence, ax
            As in `from_predictions`.

        Returns
        -------
        CalibrationDisplay
        """
        require_matplotlib()
        proba, order = forecast_of(estimator, X, y, classes, cls.__name__)
        return cls.from_predictions(
            y, proba, order, thresholds=thresholds, n_bins=n_bins, confidence=confidence, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        *,
        thresholds: Thresholds = "auto",
        n_bins: int = 10,
        confidence: float = 0.95,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the calibration of predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        proba : array-like of shape (n_samples, n_classes)
            Predicted probability of each class, lowest class first; rows sum to one.
        classes : sequence of labels, default=None
            The classes of the columns, lowest first. None takes the order of `y_true`, in which every class
            must then occur: numbers ascending, or that of an ordered categorical.
        thresholds : "auto", "each" or "pooled", default="auto"
            One curve per threshold, or one for all thresholds together. "auto" pools if there are more than 8
            classes.
        n_bins : int, default=10
            Number of bins, with equal counts. Equal predictions share a bin, so there may be fewer.
        confidence : float, default=0.95
            Coverage of the intervals.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CalibrationDisplay
        """
        require_matplotlib()
        _check_thresholds(thresholds)
        n_bins = check_count(n_bins, "n_bins", 10)
        check_share(confidence, "confidence", 0.95)
        labels = encode_labels(y_true, classes)
        forecast = Forecast.of(labels, proba)
        curves = forecast.curves(n_bins, confidence)
        error = mean_absolute_gap(curves)
        if thresholds == "pooled" or (thresholds == "auto" and len(labels.classes) > _MOST_CLASSES):
            curves = (forecast.pooled_curve(n_bins, confidence),)
        display = cls(curves=curves, calibration_error=error, confidence=confidence)
        return display.plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 6.4, 7.0

    def _draw(self, ax: "Axes") -> None:
        colours = self._colours()
        (self.diagonal_,) = ax.plot(
            [0, 1],
            [0, 1],
            color="0.35",
            linestyle=(0, (5, 3)),
            linewidth=1.2,
            label="perfect calibration",
            zorder=1,
        )
        self.lines_ = [
            ax.errorbar(
                curve.predicted,
                curve.observed,
                yerr=(curve.observed - curve.lower, curve.upper - curve.observed),
                color=colour,
                marker=_MARKERS[k % len(_MARKERS)],
                markersize=6.5,
                markeredgecolor="white",
                markeredgewidth=0.7,
                linewidth=1.3,
                elinewidth=1.3,
                label=curve.name,
            )
            for k, (curve, colour) in enumerate(zip(self.curves, colours, strict=True))
        ]
        ax.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            ylabel="observed frequency",
            title="Calibration of the cumulative probabilities\n"
            f"mean absolute calibration error {self.calibration_error:.3f}",
        )
        ax.grid(color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
        # There is little room above the diagonal: many lines of text have to be small.
        small: dict[str, Any] = {"fontsize": "x-small", "title_fontsize": "small", "labelspacing": 0.2}
        self.legend_ = ax.legend(
            loc="upper left",
            title=f"bars: {100 * self.confidence:g} % intervals",
            alignment="left",
            **(small if len(self.curves) > _FEW_CURVES else {}),
        )
        for text in self.legend_.get_texts():
            text.set_parse_math(False)  # a dollar is a dollar
        self.strip_ = self._draw_strip(ax, colours)

    def _colours(self) -> list[Any]:
        """Return one colour per curve, darkest for the lowest threshold, all visible on white."""
        from matplotlib import colormaps

        if len(self.curves) == 1:
            return [COLOUR]
        return list(colormaps[COLOUR_MAP](np.linspace(0.0, 0.85, len(self.curves))))

    def _draw_strip(self, ax: "Axes", colours: list[Any]) -> "Axes":
        """Draw the histogram of predicted probabilities at the lower end of the axes."""
        from matplotlib.ticker import MaxNLocator

        strip = axes_below(ax, _STRIP_SHARE, _GAP_SHARE)
        edges = np.linspace(0, 1, HISTOGRAM_BARS + 1)
        base = np.zeros(HISTOGRAM_BARS)
        for curve, colour in zip(self.curves, colours, strict=True):
            strip.bar(
                edges[:-1],
                curve.histogram,
                width=np.diff(edges),
                bottom=base,
                align="edge",
                color=colour,
                edgecolor="white",
                linewidth=0.5,
            )
            base += curve.histogram
        strip.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=[1, 2, 5, 10]))
        strip.set(xlabel="predicted probability", ylabel="count")
        strip.spines[["top", "right"]].set_visible(False)
        return strip


def _check_thresholds(thresholds: object) -> None:
    if thresholds not in ("auto", "each", "pooled"):
        raise ValueError(
            f'thresholds is {thresholds!r}; "each" (one curve per threshold), "pooled" (one for all) or '
            '"auto" is needed.'
        )
