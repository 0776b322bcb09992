"""`PredictionSetDisplay`: how often prediction sets contain the true class, and how large they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.labels import encode_labels
from isbor.plots.common import (
    COLOUR,
    COLOUR_MAP,
    Display,
    axes_beside,
    check_share,
    require_matplotlib,
    shorten,
)
from isbor.plots.intervals import wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

__all__ = ["PredictionSetDisplay"]

_NAME_LENGTH = 24
_SHARE, _GAP = 0.46, 0.05  # of the width, that the bars take
_LIGHTEST = 0.9  # of the colour map; the smallest sets
_BRIGHT = 0.55  # colours beyond it need black text
_NARROWEST = 0.03  # share of the rows that a part of a bar needs for each digit of its number


class PredictionSetDisplay(Display):
    """How often prediction sets contain the true class, and how large they are, for each class.

    Use `from_estimator` or `from_predictions` to create it, with rows that neither fitted nor calibrated the
    sets. On the left is the share of sets that contain the true class, among all rows and among those of each
    true class, with a confidence interval; the dashed line is the coverage that was asked for. On the right
    is the share of sets of each size, among the same rows.

    Parameters
    ----------
    sets : ndarray of bool of shape (n_samples, n_classes)
        Whether the set of a row has a class.
    codes : ndarray of shape (n_samples,)
        Positions of the true labels in `classes`.
    classes : sequence of labels
        Classes, lowest first.
    coverage : float
        Coverage that was asked for.
    confidence : float, default=0.95
        Coverage of the confidence intervals.

    Attributes
    ----------
    count : ndarray of shape (n_classes + 1,)
        Number of rows: of all, then of each true class, lowest first.
    covered : ndarray of shape (n_classes + 1,)
        Share of these whose set contains the true class; NaN without rows.
    lower, upper : ndarrays of shape (n_classes + 1,)
        Ends of its confidence interval.
    sizes : ndarray of shape (n_classes + 1, n_classes + 1)
        Share of these whose set has 0, 1, 2, … classes.
    ax_ : matplotlib Axes
        The axes of the coverage. This and the following attributes are set by `plot`.
    strip_ : matplotlib Axes
        The axes of the sizes, in the right part of `ax_`.
    figure_ : matplotlib Figure
        The figure of both.
    points_ : matplotlib ErrorbarContainer
        The shares with their intervals.
    nominal_ : matplotlib Line2D
        The coverage that was asked for.
    bars_ : list of matplotlib BarContainer
        One for each size that occurs, smallest first.
    labels_ : list of matplotlib Text
        The mean sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from isbor.plots import PredictionSetDisplay
    >>> sets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]], dtype=bool)
    >>> display = PredictionSetDisplay.from_predictions(
    ...     [0, 1, 2, 2], sets, coverage=0.9
    ... )  # doctest: +SKIP
    >>> display.covered.tolist()  # doctest: +SKIP
    [0.75, 1.0, 1.0, 0.5]
    """

    def __init__(
        self,
        *,
        sets: np.ndarray[Any, np.dtype[np.bool_]],
        codes: IntArray,
        classes: Sequence[Any] | LabelArray,
        coverage: float,
        confidence: float = 0.95,
    ) -> None:
        self.sets = sets
        self.codes = codes
        self.classes = classes
        self.coverage = coverage
        self.confidence = confidence
        r = len(classes)
        groups = [np.ones(len(codes), np.bool_), *(codes == k for k in range(r))]
        contained, size = sets[np.arange(len(codes)), codes], sets.sum(axis=1)
        self.count = np.array([group.sum() for group in groups])
        with np.errstate(invalid="ignore", divide="ignore"):  # classes without rows have no share
            self.covered: FloatArray = np.array([contained[group].sum() for group in groups]) / self.count
            self.lower, self.upper = wilson(self.covered, self.count, confidence)
            sizes = np.array([np.bincount(size[group], minlength=r + 1) for group in groups])
            self.sizes: FloatArray = sizes / self.count[:, None]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        coverage: float = 0.9,
        confidence: float = 0.95,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the sets of a fitted model.

        Parameters
        ----------
        estimator : PredictionSetClassifier
            A fitted model, or another with `predict_set` and `classes_`.
        X : array-like of shape (n_samples, n_features)
            Rows that neither fitted nor calibrated the sets.
        y : array-like of shape (n_samples,)
            Their labels.
        coverage : float, default=0.9
            Coverage of the sets, between 0 and 1.
        confidence, ax
            As in `from_predictions`.

        Returns
        -------
        PredictionSetDisplay
        """
        require_matplotlib()
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_set"):
            raise TypeError(
                f"{type(estimator).__name__} has no predict_set; a fitted PredictionSetClassifier is needed. "
                "For sets from another source, use PredictionSetDisplay.from_predictions."
            )
        return cls.from_predictions(
            y,
            estimator.predict_set(X, coverage),
            estimator.classes_,
            coverage=coverage,
            confidence=confidence,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        sets: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        *,
        coverage: float,
        confidence: float = 0.95,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot given sets.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        sets : array-like of bool of shape (n_samples, n_classes)
            Whether the set of a row has a class, lowest class first.
        classes : sequence of labels, default=None
            The classes of the columns, lowest first. None takes the order of `y_true`, in which every class
            must then occur: numbers ascending, or that of an ordered categorical.
        coverage : float
            Coverage that was asked for, between 0 and 1.
        confidence : float, default=0.95
            Coverage of the confidence intervals.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        PredictionSetDisplay
        """
        require_matplotlib()
        check_share(coverage, "coverage", 0.9)
        check_share(confidence, "confidence", 0.95)
        labels = encode_labels(y_true, classes)
        table = np.asarray(sets)
        if table.dtype != np.bool_ or table.shape != (len(labels.codes), len(labels.classes)):
            raise ValueError(
                f"sets has shape {table.shape} and type {table.dtype}; booleans of shape "
                f"{(len(labels.codes), len(labels.classes))} are needed: a column for each of the classes "
                f"{labels.classes.tolist()}. Pass the output of predict_set, and classes=."
            )
        display = cls(
            sets=table, codes=labels.codes, classes=labels.classes, coverage=coverage, confidence=confidence
        )
        return display.plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 9.0, 2.1 + 0.36 * len(self.count)

    def _draw(self, ax: "Axes") -> None:
        names = ["all rows", *(shorten(str(label), _NAME_LENGTH) for label in self.classes)]
        places = np.array([0.0, *(1.25 + np.arange(len(self.classes)))])  # all rows stand apart
        limits = len(names) - 0.15, -0.6
        self.nominal_: Line2D = ax.axvline(
            self.coverage, color="0.35", linestyle=(0, (5, 3)), linewidth=1.2, zorder=1
        )
        has_rows = self.count > 0
        covered = self.covered[has_rows]
        self.points_: ErrorbarContainer = ax.errorbar(
            covered,
            places[has_rows],
            fmt="o",
            color=COLOUR,
            capsize=3,
            markersize=6,
            xerr=(covered - self.lower[has_rows], self.upper[has_rows] - covered),
        )
        ax.set_yticks(
            places,
            [f"{name}  (n = {n:,})" for name, n in zip(names, self.count, strict=True)],
            parse_math=False,
        )
        low = min(self.lower[has_rows].min(), self.coverage) - 0.04
        ax.set(
            ylim=limits,
            xlim=(max(low, -0.02), 1.02),
            xlabel="share of sets with the true class\n"
            f"(dashed: {100 * self.coverage:g} % asked for; bars: {100 * self.confidence:g} % intervals)",
        )
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
        ax.locator_params(axis="x", nbins=5)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="0.9", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title("Coverage", fontsize=11)
        self.strip_ = axes_beside(ax, _SHARE, _GAP)
        self._draw_sizes(self.strip_, places)
        self.strip_.set(ylim=limits)

    def _draw_sizes(self, strip: "Axes", places: FloatArray) -> None:
        from matplotlib import colormaps

        shares = np.nan_to_num(self.sizes)
        occurring = np.flatnonzero(shares[0])
        self.bars_: list[BarContainer] = []
        base = np.zeros(len(places))
        for size in occurring:
            brightness = _LIGHTEST * (1.0 - size / max(len(self.classes), 1))
            part = strip.barh(
                places,
                shares[:, size],
                left=base,
                height=0.68,
                color=colormaps[COLOUR_MAP](brightness),
                edgecolor="white",
                linewidth=0.8,
                label=f"{size}",
            )
            strip.bar_label(
                part,
                [f"{size}" if share > _NARROWEST * len(str(size)) else "" for share in shares[:, size]],
                label_type="center",
                fontsize=9,
                color="black" if brightness > _BRIGHT else "white",
            )
            self.bars_.append(part)
            base += shares[:, size]
        mean = shares @ np.arange(shares.shape[1])
        self.labels_: list[Text] = [
            strip.text(1.02, place, f"{size:.2f}" if n else "", va="center", fontsize=9)
            for place, size, n in zip(places, mean, self.count, strict=True)
        ]
        strip.text(1.02, places[0] - 0.75, "mean", va="center", fontsize=9)
        strip.set_yticks([])
        strip.spines[["top", "right", "left"]].set_visible(False)
        strip.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        strip.set(xlim=(0.0, 1.15), xticks=(0.0, 0.25, 0.5, 0.75, 1.0), xlabel="share of the rows")
        strip.set_title("Classes in a set", fontsize=11)
