"""The latent score over two features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from isbor._core.types import FloatArray, IntArray, LabelArray
from isbor.data.encoding import TableEncoding
from isbor.data.labels import rank_labels
from isbor.plots.common import COLOUR_MAP, new_axes, require_matplotlib
from isbor.plots.two_features import (
    check_complete,
    check_numeric,
    feature_names,
    feature_numbers,
    grid,
    typical_row,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LatentDisplay"]

_VECTOR_COLOUR = "#d55e00"


class LatentDisplay:
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

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        grid_resolution: int = 200,
        ax: "Axes | None" = None,
    ) -> Self:
        """Compute the score of a fitted model on a grid, and draw it.

        Parameters
        ----------
        estimator : ISBOR or another estimator of this package
            A fitted model. The score of a `GPOR` is made of all rows, and none are marked.
        X : array-like of shape (n_samples, n_features)
            Rows without missing cells. The grid spans their range. Features that are not shown are held at
            their mean, categories at their most frequent level; a vector is shown at its own two features,
            whatever its others are, and where one of the two was missing at its mean in training.
        y : array-like of shape (n_samples,), default=None
            Labels. If given, the rows are drawn as small points coloured by class, dark for the lowest and
            light for the highest: a row that the model gets wrong differs from the others of its region.
        features : tuple of two int or str, default=(0, 1)
            Columns of numbers to show, by number or by name, the horizontal axis first.
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
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution is {grid_resolution}; at least 2 points an axis are needed.")
        table: TableEncoding = estimator._table
        encoded = table(estimator, X)
        names = feature_names(estimator)
        check_complete(X, names)
        numbers = feature_numbers(features, names)
        check_numeric(numbers, names, table)
        codes = None
        if y is not None:
            check_consistent_length(encoded, y)
            codes = rank_labels(y, estimator.classes_)

        columns = np.searchsorted(table.feature, numbers)  # the value comes before the mark of missing cells
        shown = encoded[:, columns]
        xx, yy = grid(shown, grid_resolution)
        points = np.tile(typical_row(encoded, table), (xx.size, 1))
        points[:, columns] = np.stack([xx.ravel(), yy.ravel()], axis=1)
        vectors, coef, vectors_name = _vectors_of(estimator)
        display = cls(
            xx=xx,
            yy=yy,
            score=estimator._encoded_latent(points).reshape(xx.shape),
            thresholds=estimator.thresholds_,
            classes=estimator.classes_,
            vectors=vectors[:, columns],
            coef=coef,
            vectors_name=vectors_name,
            feature_names=[names[number] for number in numbers],
            rows=None if codes is None else shown,
            codes=codes,
        )
        return display.plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self
        """
        require_matplotlib()
        from matplotlib.patheffects import withStroke
        from matplotlib.transforms import ScaledTranslation

        ax = new_axes(7.0, 6.2) if ax is None else ax
        figure = ax.figure
        self.surface_ = ax.pcolormesh(
            self.xx, self.yy, self.score, shading="gouraud", cmap=COLOUR_MAP, rasterized=True
        )
        self.colorbar_ = figure.colorbar(self.surface_, ax=ax, label="latent score (lines: thresholds)")
        self.rows_ = None
        if self.rows is not None:
            self.rows_ = ax.scatter(
                self.rows[:, 0],
                self.rows[:, 1],
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
        # Thresholds that the score does not cross have no line, and without any matplotlib would warn.
        crossed = np.unique(self.thresholds)
        crossed = crossed[(crossed > self.score.min()) & (crossed < self.score.max())]
        self.boundaries_ = None
        if crossed.size:
            # White on a dark seam, so that the lines show on the light and the dark end of the map.
            seam = withStroke(linewidth=2.6, foreground="black")
            self.boundaries_ = ax.contour(
                self.xx,
                self.yy,
                self.score,
                levels=crossed,
                colors="white",
                linewidths=1.3,
                linestyles="solid",  # by default negative levels are dashed
            )
            self.boundaries_.set_path_effects([seam])
            self.colorbar_.add_lines(self.boundaries_)
            self.colorbar_.lines[-1].set_path_effects([seam])
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
        self.labels_ = [
            ax.text(
                x,
                y,
                str(self.classes[code]),
                ha="center",
                va="center",
                fontsize=12,
                fontweight="bold",
                parse_math=False,  # a dollar is a dollar
                bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
                zorder=5,
            )
            for code, x, y in self.label_positions()
        ]
        ax.set(
            xlim=(self.xx.min(), self.xx.max()),
            ylim=(self.yy.min(), self.yy.max()),
            title="Latent score and the classes it is cut into",
        )
        ax.set_xlabel(self.feature_names[0], parse_math=False)
        ax.set_ylabel(self.feature_names[1], parse_math=False)
        # Below the axes and the name of the feature: inside it would cover a part of the map.
        below = ax.transAxes + ScaledTranslation(0.0, -32 / 72, figure.dpi_scale_trans)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, 0.0),
                bbox_transform=below,
                ncols=2,
                frameon=False,
                handletextpad=0.2,
            )
        self.ax_ = ax
        self.figure_ = figure
        return self

    def label_positions(self) -> list[tuple[int, float, float]]:
        """Return where the labels of the regions go: the position in `classes`, then the point.

        Each connected region is labelled at the point farthest from its edges and from the relevance
        vectors. Regions that have no room are left out, except the roomiest one of a class.
        """
        predicted = np.searchsorted(self.thresholds, self.score, side="left")
        free = ~_near(self.xx, self.yy, self.vectors, share=0.04)
        enough = 0.03 * len(self.xx)
        positions: list[tuple[int, float, float]] = []
        for code in np.unique(predicted).tolist():
            regions, n_regions = ndimage.label(predicted == code)
            # The padding counts the frame of the picture as an edge.
            room = ndimage.distance_transform_edt(np.pad((predicted == code) & free, 1))[1:-1, 1:-1]
            spots = ndimage.maximum_position(room, regions, range(1, n_regions + 1))
            roomiest = max(room[spot] for spot in spots)
            positions += [
                (code, float(self.xx[spot]), float(self.yy[spot]))
                for spot in spots
                if room[spot] >= min(enough, roomiest)
            ]
        return positions


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
