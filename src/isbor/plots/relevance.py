"""`RelevanceDisplay`: the relevance of the features as bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray
from isbor.plots.common import COLOUR, Display, check_count, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.text import Annotation, Text

__all__ = ["RelevanceDisplay"]

_OTHERS_COLOUR = "#a3a3a3"
_SUM_TOLERANCE = 1e-4  # loose enough for single precision
_NAME_LENGTH = 34  # characters; longer names would leave no room for the bars


class RelevanceDisplay(Display):
    """The relevance of the features as bars, largest first.

    Use `from_estimator` or `from_values` to create it. Relevances sum to one, or are all zero if the model
    has no basis function; the plot then says so. Features beyond the first `max_features` share the last bar,
    "others".

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        Relevance of each feature, in the order of the columns.
    names : sequence of str
        Names of the features.
    max_features : int, default=20
        Largest number of features with a bar of their own.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn. This and the following attributes are set by `plot`.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer or None
        The bars; None if all relevances are zero.
    labels_ : list of matplotlib Text
        The numbers at the bars.
    note_ : matplotlib Text or None
        The sentence that is shown instead of bars if all relevances are zero.

    See Also
    --------
    EffectsDisplay : How predictions change along a feature.

    Examples
    --------
    >>> from isbor.plots import RelevanceDisplay
    >>> display = RelevanceDisplay.from_values(
    ...     [0.2, 0.7, 0.1], ["age", "dose", "weight"], max_features=2
    ... )  # doctest: +SKIP
    >>> display.bars()  # doctest: +SKIP
    [('dose', 0.7), ('age', 0.2), ('others (1)', 0.1)]
    """

    def __init__(self, *, relevance: FloatArray, names: Sequence[str], max_features: int = 20) -> None:
        self.relevance = relevance
        self.names = names
        self.max_features = max_features

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 20, ax: "Axes | None" = None) -> Self:
        """Plot the feature relevances of a fitted model.

        Parameters
        ----------
        estimator : ISBOR
            A fitted model, whose `feature_relevance_` is drawn, with its `feature_names_in_` if it has any.
        max_features, ax
            As in `from_values`.

        Returns
        -------
        RelevanceDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "feature_relevance_"):
            raise TypeError(
                f"{type(estimator).__name__} has no feature_relevance_; a fitted ISBOR is needed. For a "
                "pipeline, pass its last step. For other values, use RelevanceDisplay.from_values."
            )
        names = getattr(estimator, "feature_names_in_", None)
        return cls.from_values(estimator.feature_relevance_, names, max_features=max_features, ax=ax)

    @classmethod
    def from_values(
        cls,
        relevance: ArrayLike,
        names: Sequence[str] | NDArray[Any] | None = None,
        *,
        max_features: int = 20,
        ax: "Axes | None" = None,
    ) -> Self:
        """Plot given relevances.

        Parameters
        ----------
        relevance : array-like of shape (n_features,)
            Nonnegative numbers that sum to one, or zeros if no feature is relevant.
        names : sequence of str, default=None
            Names of the features; None names them "x0", "x1" and so on.
        max_features : int, default=20
            Largest number of features with a bar of their own.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        RelevanceDisplay
        """
        require_matplotlib()
        shares = _read_shares(relevance)
        display = cls(
            relevance=shares,
            names=_read_names(names, len(shares)),
            max_features=check_count(max_features, "max_features", 20),
        )
        return display.plot(ax=ax)

    def bars(self) -> list[tuple[str, float]]:
        """Return name and length of each bar: the largest first, ties in the order of the columns."""
        order = np.argsort(-self.relevance, kind="stable")
        named, others = order[: self.max_features], order[self.max_features :]
        bars = [(self.names[feature], float(self.relevance[feature])) for feature in named]
        if len(others):
            bars.append((f"others ({len(others)})", float(self.relevance[others].sum())))
        return bars

    def _figure_size(self) -> tuple[float, float]:
        n_bars = min(len(self.names), self.max_features + 1) if np.any(self.relevance) else 3
        return 7.0, 1.3 + 0.28 * n_bars

    def _draw(self, ax: "Axes") -> None:
        self.bars_: BarContainer | None = None
        self.labels_: list[Annotation] = []
        self.note_: Text | None = None
        ax.set_title("Relevance of the features")
        if np.any(self.relevance):
            self._draw_bars(ax, self.bars())
        else:
            ax.set(xticks=[], yticks=[])
            self.note_ = ax.text(
                0.5,
                0.5,
                "The model has no basis function:\nno feature is relevant.",
                ha="center",
                va="center",
                transform=ax.transAxes,
                fontsize=12,
            )

    def _draw_bars(self, ax: "Axes", bars: list[tuple[str, float]]) -> None:
        from matplotlib.ticker import MaxNLocator

        n_named = min(len(self.names), self.max_features)
        places = np.arange(len(bars))
        drawn = ax.barh(
            places,
            [length for _, length in bars],
            height=0.72,
            color=[COLOUR if place < n_named else _OTHERS_COLOUR for place in places],
        )
        self.bars_ = drawn
        self.labels_ = ax.bar_label(drawn, [_percentage(length) for _, length in bars], padding=4, fontsize=9)
        ax.set_yticks(places, [shorten(name, _NAME_LENGTH) for name, _ in bars], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(
            xlim=(0.0, 1.18 * max(length for _, length in bars)),  # room for the numbers
            ylim=(len(bars) - 0.4, -0.6),  # the first on top
            xlabel="share of the relevance",
        )


def _read_shares(relevance: ArrayLike) -> FloatArray:
    shares = np.asarray(relevance, dtype=np.float64)
    if shares.ndim != 1 or len(shares) == 0:
        raise ValueError(
            f"relevance has shape {shares.shape}; one number per feature, shape (n_features,), is needed."
        )
    total = shares.sum()
    # Written so that NaN fails.
    if not (shares.min() >= 0 and (total == 0 or abs(total - 1) <= _SUM_TOLERANCE)):
        raise ValueError(
            f"relevance has minimum {shares.min():.3g} and sum {total:.6g}; nonnegative numbers that sum to "
            "1 are needed, or all 0 if no feature is relevant. Divide them by their sum."
        )
    return shares


def _read_names(names: Sequence[str] | NDArray[Any] | None, n_features: int) -> list[str]:
    if names is None:
        return [f"x{feature}" for feature in range(n_features)]
    if isinstance(names, str) or len(names) != n_features:
        raise ValueError(
            f"names is {names!r}, of length {len(names)}; a list of {n_features} name(s) is needed, one per "
            'feature. Pass such a list, or None for "x0", "x1" and so on.'
        )
    return [str(name) for name in names]


def _percentage(share: float) -> str:
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share else "0"
