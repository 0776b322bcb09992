"""`LatentDisplay`: the latent score over two features."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.labels import rank_labels
from isbor.plots.common import COLOUR_MAP, Display, check_count, require_matplotlib, shorten
from isbor.plots.region_labels import place_labels
from isbor.plots.two_features import TwoFeatures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.contour import QuadContourSet
    from matplotlib.legend import Legend
    from matplotlib.text import Text

__all__ = ["LatentDisplay"]

_VECTOR_COLOUR = "#d55e00"
_NAME_LENGTH = 48  # of a feature
_CHARACTER_WIDTH = 4.6  # of the note, in points


class LatentDisplay(Display):
    """The latent score over two features, with class boundaries and relevance or support vectors.

    Use `from_estimator` to create it. Colours show the score, lines the class boundaries, where the score
    equals a threshold, and points the relevance or support vectors, larger for larger weights. Each region
    is labelled with the class that `predict` returns there.

    Parameters
    ----------
    xx, yy : ndarray of shape (n, n)
        Grid over the two features.
    score : ndarray of shape (n, n)
        Latent score on the grid.
    thresholds : ndarray of shape (n_classes - 1,)
        Scores at which the label changes.
    classes : ndarray of shape (n_classes,)
        Labels in order.
    vectors : ndarray of shape (n_vectors, 2)
        Relevance or support vectors, the two features only.
    coef : ndarray of shape (n_vectors,)
        Their weights in the score.
    vectors_name : str
        Their name in the legend.
    feature_names : sequence of two str
        Names for the axes.
    rows : ndarray of shape (n_rows, 2), default=None
        Rows to show as small points.
    codes : ndarray of shape (n_rows,), default=None
        Positions of their labels in `classes`.
    note : str, default=""
        Text for the legend, such as the values of the features that are not shown.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn. This and the following attributes are set by `plot`.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    surface_ : matplotlib QuadMesh
        The score.
    boundaries_ : matplotlib QuadContourSet or None
        The class boundaries; None if only one class is predicted on the grid.
    vectors_ : matplotlib PathCollection
        The relevance or support vectors.
    rows_ : matplotlib PathCollection or None
        The rows.
    labels_ : list of matplotlib Text
        The labels in the regions.
    colorbar_ : matplotlib Colorbar
        The colour bar.
    legend_ : matplotlib Legend or None
        The legend, with the note as its title.

    See Also
    --------
    EffectsDisplay : Averages along one feature or two, with any number of features.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import LatentDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> model = ISBOR(gamma=0.1).fit(X, y)
    >>> display = LatentDisplay.from_estimator(model, X)  # doctest: +SKIP
    >>> display.figure_.savefig("saddle.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        xx: FloatArray,
        yy: FloatArray,
        score: FloatArray,
        thresholds: FloatArray,
        classes: LabelArray,
        vectors: FloatArray,
        coef: FloatArray,
        vectors_name: str,
        feature_names: Sequence[str],
        rows: FloatArray | None = None,
        codes: IntArray | None = None,
        note: str = "",
    ) -> None:
        self.xx = xx
        self.yy = yy
        self.score = score
        self.thresholds = thresholds
        self.classes = classes
        self.vectors = vectors
        self.coef = coef
        self.vectors_name = vectors_name
        self.feature_names = feature_names
        self.rows = rows
        self.codes = codes
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: tuple[int | str, int | str] | None = None,
        grid_resolution: int = 200,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot the score of a fitted model.

        Parameters
        ----------
        estimator : ISBOR or another estimator of this package
            A fitted model.
        X : array-like of shape (n_samples, n_features)
            Rows whose range the plot covers. Features that are not shown are fixed at their mean or most
            frequent category in X; the legend gives the values. Relevance or support vectors are shown
            whatever their other features are; where a cell was missing, at the mean of the training rows.
        y : array-like of shape (n_samples,), default=None
            Labels. If given, rows are drawn as small points coloured by class, darkest for the lowest: a
            misclassified row differs from the others in its region. Rows in which one of the two features is
            missing are left out.
        features : tuple of two int or str, default=None
            Two numeric features, by column number or name, the horizontal axis first. None chooses those that
            matter most to the model: by `feature_relevance_`, or without it, by how much the score changes
            when the feature is taken from another row.
        grid_resolution : int, default=200
            Number of grid points along each axis.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        LatentDisplay
        """
        require_matplotlib()
        _check_latent_model(estimator)
        n = check_count(grid_resolution, "grid_resolution", 200, least=2)
        two = TwoFeatures.of(estimator, X, features)
        codes, notes = None, [two.held]
        if y is not None:
            check_consistent_length(two.is_shown, y)
            codes = rank_labels(y, estimator.classes_)[two.is_shown]
            if len(codes) < len(two.is_shown):
                notes.append(f"{len(two.is_shown) - len(codes):,} row(s) not shown: missing cells")
        xx, yy = two.grid(n)
        vectors, coef, vectors_name = _vectors_of(estimator)
        display = cls(
            xx=xx,
            yy=yy,
            score=estimator._encoded_latent(two.encoded(xx, yy)).reshape(xx.shape),
            thresholds=estimator.thresholds_,
            classes=estimator.classes_,
            vectors=vectors[:, two.columns],
            coef=coef,
            vectors_name=vectors_name,
            feature_names=two.names,
            rows=None if codes is None else two.rows,
            codes=codes,
            note="\n".join(filter(None, notes)),
        )
        return display.plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 7.0, 6.2

    def _draw(self, ax: "Axes") -> None:
        self.surface_ = ax.pcolormesh(
            self.xx, self.yy, self.score, shading="gouraud", cmap=COLOUR_MAP, rasterized=True
        )
        self.colorbar_ = self.figure_.colorbar(self.surface_, ax=ax, label="latent score (lines: thresholds)")
        self.rows_ = None if self.rows is None else self._draw_rows(ax, self.rows)
        self.boundaries_ = self._draw_boundaries(ax)
        self.vectors_ = ax.scatter(
            self.vectors[:, 0],
            self.vectors[:, 1],
            s=_marker_areas(self.coef),
            c=_VECTOR_COLOUR,
            edgecolors="white",
            linewidths=1.6,
            zorder=4,
            # A leading underscore keeps it out of the legend.
            label=f"{self.vectors_name} (area: weight)" if len(self.vectors) else "_none",
        )
        ax.set(xlim=(self.xx.min(), self.xx.max()), ylim=(self.yy.min(), self.yy.max()))
        ax.set_xlabel(shorten(self.feature_names[0], _NAME_LENGTH), parse_math=False)
        ax.set_ylabel(shorten(self.feature_names[1], _NAME_LENGTH), parse_math=False)
        ax.set_title("Latent score and predicted classes")
        self.figure_.canvas.figure.draw_without_rendering()  # to know sizes
        self.legend_ = self._draw_legend(ax)
        self.labels_ = self._draw_labels(ax)

    def _draw_rows(self, ax: "Axes", rows: FloatArray) -> "PathCollection":
        return ax.scatter(
            rows[:, 0],
            rows[:, 1],
            s=12,
            c=self.codes,
            vmin=0,
            vmax=len(self.classes) - 1,
            cmap=COLOUR_MAP,
            alpha=0.8,
            edgecolors="white",
            linewidths=0.4,
            label="rows (darkest: lowest class)",
        )

    def _draw_boundaries(self, ax: "Axes") -> "QuadContourSet | None":
        from matplotlib.patheffects import withStroke

        # Matplotlib warns if no level is crossed.
        crossed = np.unique(self.thresholds)
        crossed = crossed[(crossed > self.score.min()) & (crossed < self.score.max())]
        if not crossed.size:
            return None
        # White with a black outline, to be visible on light and dark colours.
        outline = withStroke(linewidth=2.6, foreground="black")
        boundaries = ax.contour(
            self.xx,
            self.yy,
            self.score,
            levels=crossed,
            colors="white",
            linewidths=1.3,
            linestyles="solid",  # by default negative levels are dashed
        )
        boundaries.set_path_effects([outline])
        self.colorbar_.add_lines(boundaries)
        self.colorbar_.lines[-1].set_path_effects([outline])
        return boundaries

    def _draw_legend(self, ax: "Axes") -> "Legend | None":
        from matplotlib.transforms import ScaledTranslation

        handles, names = ax.get_legend_handles_labels()
        if not (handles or self.note):
            return None
        width = max(int(_size_in_points(ax)[0] / _CHARACTER_WIDTH), 12)
        note = "\n".join(textwrap.fill(line, width) for line in self.note.splitlines())
        place: dict[str, Any] = {"loc": "lower left", "alignment": "left"}
        if self.figure_.get_layout_engine() is not None:
            # Below the axes and their label, where the layout makes room for it.
            below = ScaledTranslation(0.0, -32 / 72, self.figure_.dpi_scale_trans)
            place = {
                "loc": "upper center",
                "bbox_to_anchor": (0.5, 0.0),
                "bbox_transform": ax.transAxes + below,
                "ncols": 2,
                "frameon": False,
            }
        legend = ax.legend(
            handles,
            names,
            title=note or None,
            title_fontsize="small",
            fontsize="small",
            handletextpad=0.2,
            **place,
        )
        legend.get_title().set(parse_math=False, multialignment=legend.get_alignment())
        return legend

    def _draw_labels(self, ax: "Axes") -> "list[Text]":
        predicted = np.searchsorted(self.thresholds, self.score, side="left")
        covered = _near(self.xx, self.yy, self.vectors, share=0.04)
        if self.legend_ is not None:
            low, high = ax.transData.inverted().transform(self.legend_.get_window_extent().get_points())
            covered |= (self.xx < high[0]) & (self.xx > low[0]) & (self.yy < high[1]) & (self.yy > low[1])
        return [
            ax.text(
                self.xx[label.row, label.column],
                self.yy[label.row, label.column],
                label.text,
                ha="center",
                va="center",
                fontsize=label.size,
                fontweight="bold",
                parse_math=False,  # a dollar is a dollar
                bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
                zorder=5,
            )
            for label in place_labels(
                predicted, ~covered, [str(label) for label in self.classes], _size_in_points(ax)
            )
        ]


def _check_latent_model(estimator: Any) -> None:
    if not hasattr(estimator, "latent"):
        raise TypeError(
            f"{type(estimator).__name__} has no latent score; a fitted estimator of isbor is needed. For a "
            "pipeline, pass its last step, and X as transformed by the steps before."
        )
    check_is_fitted(estimator)


def _vectors_of(estimator: Any) -> tuple[FloatArray, FloatArray, str]:
    """Return the model's relevance or support vectors, if any, their weights, and their name."""
    if hasattr(estimator, "relevance_vectors_"):
        return estimator.relevance_vectors_, estimator.dual_coef_, "relevance vectors"
    if hasattr(estimator, "support_vectors_"):
        return estimator.support_vectors_, estimator.dual_coef_, "support vectors"
    return np.empty((0, len(estimator._encoding.feature))), np.empty(0), "vectors"


def _size_in_points(ax: "Axes") -> tuple[float, float]:
    box = ax.get_window_extent()
    return 72 * box.width / ax.figure.dpi, 72 * box.height / ax.figure.dpi


def _near(xx: FloatArray, yy: FloatArray, points: FloatArray, share: float) -> NDArray[np.bool_]:
    """Return which grid points are close to any of the points: within a share of the width and height."""
    near = np.zeros(xx.shape, dtype=np.bool_)
    for x, y in points:
        near |= np.hypot((xx - x) / np.ptp(xx), (yy - y) / np.ptp(yy)) < share
    return near


def _marker_areas(coef: FloatArray) -> FloatArray:
    """Return marker areas in points²: a visible minimum plus a part proportional to the absolute weight."""
    size = np.abs(coef)
    largest = size.max(initial=np.finfo(np.float64).tiny)  # in case there are none
    areas: FloatArray = 40.0 + 110.0 * size / largest
    return areas
