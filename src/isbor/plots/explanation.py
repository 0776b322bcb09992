"""`ExplanationDisplay`: from the mean score of a background to the score of a row, feature by feature."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor.data.feature_values import value_text
from isbor.plots.common import COLOUR, SECOND_COLOUR, Display, check_count, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.text import Annotation, Text

    from isbor.inspection.explanation import Explanation

__all__ = ["ExplanationDisplay"]

_LINE_COLOUR = "#8a8a8a"
_NAME_LENGTH = 34
_CLASS_LENGTH = 14
_NARROWEST = 0.06  # share of the width that a class needs for its name


class ExplanationDisplay(Display):
    """One explained row: its score among the thresholds, and what each feature contributes.

    Use `from_estimator` or `from_explanation` to create it. The first bar starts at the mean score of the
    background, each next one where the one above ends, and the last ends at the score of the row. Vertical
    lines are the thresholds of the row, between the names of the classes.

    Parameters
    ----------
    explanation : Explanation
        Explained rows, see `ISBOR.explain`.
    row : int, default=0
        Which of them to draw.
    max_features : int, default=10
        Largest number of features with a bar of their own; others share the last bar.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn. This and the following attributes are set by `plot`.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer
        The contributions.
    labels_ : list of matplotlib Text
        The numbers at the bars.
    classes_ : list of matplotlib Text
        The names of the classes between the thresholds, as far as there is room.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import ExplanationDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> model = ISBOR(basis="rbf").fit(X, y)
    >>> display = ExplanationDisplay.from_estimator(model, X[:1])  # doctest: +SKIP
    >>> display.figure_.savefig("row.png")  # doctest: +SKIP
    """

    def __init__(self, *, explanation: "Explanation", row: int = 0, max_features: int = 10) -> None:
        self.explanation = explanation
        self.row = row
        self.max_features = max_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        row: int = 0,
        background: ArrayLike | None = None,
        max_features: int = 10,
        ax: "Axes | None" = None,
    ) -> Self:
        """Explain a row and draw it.

        Parameters
        ----------
        estimator : ISBOR or another estimator of this package
            A fitted model.
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the same features as in `fit`.
        row : int, default=0
            Which of them to draw.
        background : array-like or data frame, default=None
            Rows to compare with, see `ISBOR.explain`.
        max_features : int, default=10
            Largest number of features with a bar of their own.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        ExplanationDisplay
        """
        require_matplotlib()
        if not hasattr(estimator, "explain"):
            raise TypeError(
                f"{type(estimator).__name__} has no method explain; a fitted estimator of isbor is needed. "
                "For a pipeline, pass its last step, and X as transformed by the steps before."
            )
        check_is_fitted(estimator)
        found = estimator.explain(X, background=background, functions=False)
        return cls.from_explanation(found, row=row, max_features=max_features, ax=ax)

    @classmethod
    def from_explanation(
        cls, explanation: "Explanation", *, row: int = 0, max_features: int = 10, ax: "Axes | None" = None
    ) -> Self:
        """Draw a row that is explained already.

        Parameters
        ----------
        explanation : Explanation
            Explained rows.
        row, max_features, ax
            As in `from_estimator`.

        Returns
        -------
        ExplanationDisplay
        """
        require_matplotlib()
        if check_count(row, "row", 0, least=0) >= len(explanation):
            raise ValueError(f"row is {row}; {len(explanation)} row(s) are explained, counted from 0.")
        count = check_count(max_features, "max_features", 10)
        return cls(explanation=explanation, row=int(row), max_features=count).plot(ax=ax)

    def bars(self) -> list[tuple[str, float]]:
        """Return name and length of each bar, the largest first."""
        contributions = self.explanation.contributions[self.row]
        order = np.argsort(-np.abs(contributions), kind="stable")
        named, others = order[: self.max_features], order[self.max_features :]
        names, values = self.explanation.feature_names, self.explanation.values[self.row]
        bars = []
        for j in named:
            text = value_text(values[j])
            name = shorten(names[j], max(_NAME_LENGTH - len(text) - 3, 10))
            bars.append((shorten(f"{name} = {text}", _NAME_LENGTH), float(contributions[j])))
        if len(others):
            bars.append((f"others ({len(others)})", float(contributions[others].sum())))
        return bars

    def _figure_size(self) -> tuple[float, float]:
        return 7.5, 1.9 + 0.3 * min(len(self.explanation.feature_names), self.max_features + 1)

    def _draw(self, ax: "Axes") -> None:
        found, bars = self.explanation, self.bars()
        lengths = np.array([length for _, length in bars])
        ends = found.baseline + np.cumsum(lengths)
        places = np.arange(len(bars))
        ax.plot([found.baseline] * 2, [-0.75, 0.4], color="black", linewidth=1.0)
        for place, end in zip(places[:-1], ends[:-1], strict=True):
            ax.plot([end, end], [place - 0.36, place + 1.36], color="black", linewidth=0.7)
        score = float(found.score[self.row])
        ax.plot([score, score], [places[-1] - 0.36, len(bars) - 0.15], color="black", linewidth=1.8)
        colours = [COLOUR if length >= 0 else SECOND_COLOUR for length in lengths]
        drawn = ax.barh(places, lengths, left=ends - lengths, height=0.72, color=colours, zorder=2)
        self.bars_: BarContainer = drawn
        points = np.concatenate([[found.baseline], ends])
        width = max(float(np.ptp(points)), 1e-9)
        near = found.thresholds[self.row]
        near = near[(near > points.min() - width) & (near < points.max() + width)]
        low, high = min(points.min(), near.min(initial=np.inf)), max(points.max(), near.max(initial=-np.inf))
        margin = 0.14 * (high - low) + 1e-9
        ax.set_xlim(low - margin, high + margin)
        self.labels_: list[Annotation] = [
            ax.annotate(
                f"{length:+.2f}",
                (max(end, end - length), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
                zorder=3,
            )
            for place, end, length in zip(places, ends, lengths, strict=True)
        ]
        ax.set_yticks(
            [-1, *places, len(bars)],
            ["mean score of the background", *(name for name, _ in bars), "score of the row"],
            parse_math=False,
        )
        for place, value in ((-1, found.baseline), (len(bars), score)):
            ax.annotate(
                f"{value:.2f}",
                (value, place),
                ha="center",
                va="center",
                fontsize=9,
                fontweight="bold",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8},
                zorder=3,
            )
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(bars) + 0.6, -1.6)  # the first on top
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.set_xlabel("score (lines: thresholds)")
        ax.set_title(
            f"Predicted: {shorten(str(found.predicted[self.row]), 40)}", pad=24, fontsize=11, parse_math=False
        )
        self.classes_: list[Text] = self._draw_classes(ax)

    def _draw_classes(self, ax: "Axes") -> "list[Text]":
        """Draw the thresholds, and the names of the classes between them."""
        low, high = ax.get_xlim()
        thresholds = self.explanation.thresholds[self.row]
        for threshold in thresholds[(thresholds > low) & (thresholds < high)]:
            ax.axvline(threshold, color=_LINE_COLOUR, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        edges = np.clip(np.concatenate([[low], thresholds, [high]]), low, high)
        names = []
        for label, left, right in zip(self.explanation.classes, edges[:-1], edges[1:], strict=True):
            room = (right - left) / (high - low)
            if room < _NARROWEST:
                continue
            is_predicted = label == self.explanation.predicted[self.row]
            names.append(
                ax.text(
                    0.5 * (left + right),
                    1.02,
                    shorten(str(label), max(int(_CLASS_LENGTH * room / 0.2), 2)),
                    transform=ax.get_xaxis_transform(),
                    ha="center",
                    va="bottom",
                    fontsize=9,
                    color="black" if is_predicted else "#555555",
                    fontweight="bold" if is_predicted else "normal",
                    parse_math=False,
                )
            )
        return names
