"""`OrdinalConfusionDisplay`: how often each class is predicted as which, and how far off predictions are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray, LabelArray
from isbor.data.labels import encode_labels
from isbor.metrics.arguments import read_labels
from isbor.plots.common import (
    COLOUR,
    SECOND_COLOUR,
    Display,
    axes_beside,
    require_matplotlib,
    shorten,
)
from isbor.plots.order import class_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.container import BarContainer
    from matplotlib.text import Annotation, Text

__all__ = ["Normalization", "OrdinalConfusionDisplay"]

Normalization: TypeAlias = Literal["true", "pred", "all"] | None

_COLOUR_MAP = "Blues"  # light where nothing is
_EXACT_COLOUR = "#7f7f7f"
_DARK = 0.55  # of the largest value; numbers on darker cells are white
_NAME_LENGTH = 18
_MOST_NUMBERS = 16  # with more classes, numbers in the cells are not legible
_FEW_CLASSES = 9  # with more, they are set smaller
_MOST_BARS = 7  # larger distances share the last bar
_SHARE, _GAP = 0.3, 0.15  # of the width, that the bars take


class OrdinalConfusionDisplay(Display):
    """A confusion matrix of ordered classes, and beside it how far predictions are from the true class.

    Use `from_estimator` or `from_predictions` to create it, with rows that the model was not fitted to. The
    matrix has the true classes as rows, lowest at the top. The bars beside it are the shares of the rows that
    are off by 0, 1, 2, … classes, in two parts: predicted too low, and too high.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Weight of the rows of each true class (first axis) and predicted class: their number, unless they have
        weights.
    classes : sequence of labels
        Classes, lowest first.
    normalize : "true", "pred", "all" or None, default=None
        What the numbers in the cells are shares of: the rows of the true class, those of the predicted class,
        all rows. None shows the counts.

    Attributes
    ----------
    mean_absolute_error : float
        Mean number of classes between true and predicted class.
    errors : ndarray of shape (2 * n_classes - 1,)
        Share of the rows that are predicted r - 1 classes too low, …, 1 too low, right, 1 too high, …
    ax_ : matplotlib Axes
        The axes of the matrix. This and the following attributes are set by `plot`.
    strip_ : matplotlib Axes
        The axes of the bars, in the right part of `ax_`.
    figure_ : matplotlib Figure
        The figure of both.
    cells_ : matplotlib QuadMesh
        The matrix. Colours are shares of the true class, unless `normalize` is "pred" or "all".
    text_ : list of matplotlib Text
        The numbers in the cells, row by row; none with more than 16 classes.
    bars_ : list of two matplotlib BarContainer
        The bars: predicted too low or right, and predicted too high.
    labels_ : list of matplotlib Text
        The numbers at the bars.

    Examples
    --------
    >>> from isbor.plots import OrdinalConfusionDisplay
    >>> display = OrdinalConfusionDisplay.from_predictions(
    ...     ["low", "mid", "high", "high"], ["low", "high", "high", "low"], ["low", "mid", "high"]
    ... )  # doctest: +SKIP
    >>> display.mean_absolute_error  # doctest: +SKIP
    0.75
    """

    def __init__(
        self,
        *,
        confusion_matrix: FloatArray,
        classes: Sequence[Any] | LabelArray,
        normalize: Normalization = None,
    ) -> None:
        self.confusion_matrix = confusion_matrix
        self.classes = classes
        self.normalize = normalize

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        classes: Sequence[Any] | LabelArray | None = None,
        sample_weight: ArrayLike | None = None,
        normalize: Normalization = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the confusion matrix of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier or pipeline with `predict` and `classes_`.
        X : array-like of shape (n_samples, n_features)
            Rows, preferably not those that the estimator was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : sequence of labels, default=None
            All labels, lowest first. None takes the order of y if it is an ordered categorical, else that of
            the estimator's `classes_`, which is right for ISBOR. Classifiers of scikit-learn sort strings
            alphabetically: for them, pass the order.
        sample_weight, normalize, ax
            As in `from_predictions`.

        Returns
        -------
        OrdinalConfusionDisplay
        """
        require_matplotlib()
        check_is_fitted(estimator)
        if not hasattr(estimator, "classes_"):
            raise TypeError(
                f"{type(estimator).__name__} has no classes_; a fitted classifier is needed. For predictions "
                "from another source, use OrdinalConfusionDisplay.from_predictions."
            )
        order = class_order(estimator.classes_, y, classes)
        return cls.from_predictions(
            y, estimator.predict(X), order, sample_weight=sample_weight, normalize=normalize, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        classes: Sequence[Any] | LabelArray | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        normalize: Normalization = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the confusion matrix of predicted labels.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        classes : sequence of labels, default=None
            All labels, lowest first. None takes the order of `y_true`: numbers ascending, or that of an
            ordered categorical.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. None means weight 1.
        normalize : "true", "pred", "all" or None, default=None
            What the numbers in the cells are shares of: the rows of the true class, those of the predicted
            class, all rows. None shows the counts.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        OrdinalConfusionDisplay
        """
        require_matplotlib()
        if normalize not in ("true", "pred", "all", None):
            raise ValueError(f"normalize is {normalize!r}; 'true', 'pred', 'all' or None is needed.")
        order = encode_labels(y_true).classes if classes is None else classes
        ranked = read_labels(y_true, y_pred, order, sample_weight)
        matrix = np.zeros((ranked.n_classes, ranked.n_classes))
        np.add.at(matrix, (ranked.true, ranked.pred), ranked.weight)
        return cls(confusion_matrix=matrix, classes=order, normalize=normalize).plot(ax=ax)

    @property
    def errors(self) -> FloatArray:
        """Share of the rows that are so many classes off, from r - 1 too low to r - 1 too high."""
        r = len(self.classes)
        off = np.array([np.trace(self.confusion_matrix, k) for k in range(1 - r, r)])
        shares: FloatArray = off / self.confusion_matrix.sum()
        return shares

    @property
    def mean_absolute_error(self) -> float:
        """Mean number of classes between true and predicted class."""
        r = len(self.classes)
        return float(np.abs(np.arange(1 - r, r)) @ self.errors)

    def _figure_size(self) -> tuple[float, float]:
        side = min(max(0.54 * len(self.classes), 2.9), 5.8)
        return 1.8 * side + 1.6, side + 1.3

    def _draw(self, ax: "Axes") -> None:
        names = [shorten(str(label), _NAME_LENGTH) for label in self.classes]
        places = np.arange(len(names)) + 0.5
        shares = _normalized(self.confusion_matrix, self.normalize or "true")
        self.cells_: QuadMesh = ax.pcolormesh(
            shares, cmap=_COLOUR_MAP, vmin=0.0, vmax=max(shares.max(), 1e-9), edgecolors="0.85", linewidth=0.6
        )
        self.text_: list[Text] = self._draw_numbers(ax, shares) if len(names) <= _MOST_NUMBERS else []
        of = {"true": "true class", "pred": "predicted class", "all": "table"}[self.normalize or "true"]
        ax.set_xticks(places, names, parse_math=False)
        ax.set_yticks(places, names, parse_math=False)
        if sum(map(len, names)) > 30 or len(names) > _FEW_CLASSES:
            ax.tick_params(axis="x", rotation=90 if len(names) > _FEW_CLASSES else 40)
            if len(names) <= _FEW_CLASSES:
                for tick in ax.get_xticklabels():
                    tick.set(ha="right", rotation_mode="anchor")
        ax.tick_params(length=0)
        ax.set(
            ylim=(len(names), 0),
            ylabel="true class",
            xlabel=f"predicted class\n(darker: larger share of the {of})",
        )
        ax.set_title("Confusion of the classes", fontsize=11)
        self.strip_ = axes_beside(ax, _SHARE, _GAP)
        self._draw_distances(self.strip_)

    def _draw_numbers(self, ax: "Axes", shares: FloatArray) -> "list[Text]":
        shown = self.confusion_matrix if self.normalize is None else shares
        dark = _DARK * shares.max()
        return [
            ax.text(
                j + 0.5,
                i + 0.5,
                f"{value:,.6g}" if self.normalize is None else f"{100 * value:.0f} %",
                ha="center",
                va="center",
                fontsize=9 if len(shares) <= _FEW_CLASSES else 7,
                color="white" if shares[i, j] > dark else ("black" if value else "0.6"),
            )
            for (i, j), value in np.ndenumerate(shown)
        ]

    def _draw_distances(self, strip: "Axes") -> None:
        r, errors = len(self.classes), self.errors
        low, high = errors[r - 1 :: -1], np.append(0.0, errors[r:])  # right ones are the first of `low`
        n_bars = int(np.flatnonzero(low + high).max(initial=0)) + 1
        n_bars = min(max(n_bars, 2), len(low))
        names = ["exact", "1 class", *(f"{k} classes" for k in range(2, n_bars))]
        if n_bars > _MOST_BARS:
            n_bars = _MOST_BARS
            names = [*names[: n_bars - 1], f"{n_bars - 1} or more"]
            low, high = (np.append(off[: n_bars - 1], off[n_bars - 1 :].sum()) for off in (low, high))
        low, high, places = low[:n_bars], high[:n_bars], np.arange(n_bars)
        colours = [_EXACT_COLOUR, *[COLOUR] * (n_bars - 1)]
        self.bars_: list[BarContainer] = [
            strip.barh(places, low, height=0.68, color=colours),
            strip.barh(
                places,
                high,
                left=low,
                height=0.68,
                color=SECOND_COLOUR,
                hatch="//",
                edgecolor="w",
                linewidth=0,
            ),
        ]
        self.labels_: list[Annotation] = strip.bar_label(
            self.bars_[1], [f"{100 * share:.1f} %" for share in low + high], padding=4, fontsize=9
        )
        strip.set_yticks(places, names[:n_bars])
        strip.tick_params(axis="y", length=0)
        strip.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        strip.locator_params(axis="x", nbins=4)
        strip.spines[["top", "right"]].set_visible(False)
        strip.set(
            xlim=(0.0, 1.42 * (low + high).max()),
            ylim=(1.3 * n_bars - 0.4, -0.6),
            xlabel="share of the rows",
        )
        strip.set_title(f"Off by {self.mean_absolute_error:.2f} classes on average", fontsize=11)
        if n_bars > 1:
            parts = [self.bars_[0].patches[1], self.bars_[1].patches[1]]
            names = ["predicted too low", "predicted too high"]
            strip.legend(parts, names, loc="lower right", fontsize="small", frameon=False)


def _normalized(matrix: FloatArray, by: Literal["true", "pred", "all"]) -> FloatArray:
    """Return the shares of the rows with the same true class, with the same predicted class, or of all."""
    total = {
        "true": matrix.sum(axis=1, keepdims=True),
        "pred": matrix.sum(axis=0, keepdims=True),
        "all": matrix.sum(keepdims=True),
    }[by]
    shares: FloatArray = np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)
    return shares
