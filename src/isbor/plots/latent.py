"""The latent score over two features."""

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
    """The latent score over two features, with class boundaries and the vectors that it is made of.

    Make it with `from_estimator`. The score is a filled colour map, the boundaries between classes are the
    lines on which it equals a threshold, and relevance or support vectors are points, larger for larger
    weights. Each region carries the label that `predict` gives there.

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
        The two features shown of the relevance or support vectors.
    coef : ndarray of shape (n_vectors,)
        Their weights in the score.
    vectors_name : str
        What to call them.
    feature_names : sequence of two str
        Names for the axes.
    rows : ndarray of shape (n_rows, 2), default=None
        Rows to show as small points, if any.
    codes : ndarray of shape (n_rows,), default=None
        Positions of their labels in `classes`.
    note : str, default=""
        What the picture does not show, such as the values at which other features are held.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn; this and the following are there after `plot`.
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
        The key to the colours.
    legend_ : matplotlib Legend or None
        The key to the points, and the note.

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
        """Compute the score of a fitted model on a grid, and draw it.

        Parameters
        ----------
        estimator : ISBOR or another estimator of this package
            A fitted model. The score of a `GPOR` is made of all rows, and none are marked.
        X : array-like of shape (n_samples, n_features)
            Rows. The grid spans their range. Features that are not shown are held at their mean, or at their
            most frequent category, as the picture says. A vector is shown at its own two features, whatever
            its others are; where one of the two was missing, at the mean of the training rows.
        y : array-like of shape (n_samples,), default=None
            Labels. If given, the rows are drawn as small points coloured by class, dark for the lowest and
            light for the highest: a row that the model gets wrong differs from the others of its region.
            Rows in which a feature that is shown is missing are left out.
        features : tuple of two int or str, default=None
            Numeric features to show, by number or by name, the horizontal axis first. None shows the two
            that matter most to the model: by its `feature_relevance_`, or if it has none, by how much the
            score changes with them.
        grid_resolution : int, default=200
            Points of the grid along each axis.
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
        self.figure_.canvas.figure.draw_without_rendering()  # so that sizes are known
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

        # Thresholds that the score does not cross have no line, and without any matplotlib would warn.
        crossed = np.unique(self.thresholds)
        crossed = crossed[(crossed > self.score.min()) & (crossed < self.score.max())]
        if not crossed.size:
            return None
        # White on a dark seam, so that the lines show on the light and the dark end of the map.
        seam = withStroke(linewidth=2.6, foreground="black")
        boundaries = ax.contour(
            self.xx,
            self.yy,
            self.score,
            levels=crossed,
            colors="white",
            linewidths=1.3,
            linestyles="solid",  # by default negative levels are dashed
        )
        boundaries.set_path_effects([seam])
        self.colorbar_.add_lines(boundaries)
        self.colorbar_.lines[-1].set_path_effects([seam])
        return boundaries

    def _draw_legend(self, ax: "Axes") -> "Legend | None":
        from matplotlib.transforms import ScaledTranslation

        handles, names = ax.get_legend_handles_labels()
        if not (handles or self.note):
            return None
        note = [
            textwrap.fill(line, int(_size_in_points(ax)[0] / _CHARACTER_WIDTH))
            for line in self.note.splitlines()
        ]
        place: dict[str, Any] = {"loc": "lower left", "alignment": "left"}
        if self.figure_.get_layout_engine() is not None:
            # There will be room below the axes and the name of the feature, where it does not cover the map.
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
            title="\n".join(note) or None,
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
            f"{type(estimator).__name__} has no latent score; a fitted estimator of isbor is needed. Of a "
            "pipeline, pass the last step, and X as that step sees it."
        )
    check_is_fitted(estimator)


def _vectors_of(estimator: Any) -> tuple[FloatArray, FloatArray, str]:
    """Return the rows that the score is made of, if it is of some only, their weights, and their name."""
    if hasattr(estimator, "relevance_vectors_"):
        return estimator.relevance_vectors_, estimator.coef_, "relevance vectors"
    if hasattr(estimator, "support_vectors_"):
        return estimator.support_vectors_, estimator.dual_coef_, "support vectors"
    return np.empty((0, len(estimator._table.feature))), np.empty(0), "vectors"


def _size_in_points(ax: "Axes") -> tuple[float, float]:
    box = ax.get_window_extent()
    return 72 * box.width / ax.figure.dpi, 72 * box.height / ax.figure.dpi


def _near(xx: FloatArray, yy: FloatArray, points: FloatArray, share: float) -> NDArray[np.bool_]:
    """Return which places of the grid are within a share of its width and height of any of the points."""
    near = np.zeros(xx.shape, dtype=np.bool_)
    for x, y in points:
        near |= np.hypot((xx - x) / np.ptp(xx), (yy - y) / np.ptp(yy)) < share
    return near


def _marker_areas(coef: FloatArray) -> FloatArray:
    """Return marker areas in points², in proportion to the size of the weights above a visible minimum."""
    size = np.abs(coef)
    largest = size.max(initial=np.finfo(np.float64).tiny)  # in case there are none
    areas: FloatArray = 40.0 + 110.0 * size / largest
    return areas
