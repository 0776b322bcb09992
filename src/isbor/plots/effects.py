"""`EffectsDisplay`: how predictions change along one feature or two."""

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray, IntArray
from isbor.data.feature_values import Value, value_text
from isbor.plots.common import COLOUR, COLOUR_MAP, Display, require_matplotlib, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isbor.inspection.effects import Effects

__all__ = ["EffectsDisplay"]

_NAME_LENGTH = 48
_TICK_LENGTH = 16
_LINE_LENGTH = 42  # of all names under an axis, in characters
_APART = 0.09  # of the range of a number, between it and the place of missing cells
_MOST_CELLS = 64  # that are labelled


class EffectsDisplay(Display):
    """How predictions change along one feature, as a curve, or along two, as a map.

    Use `from_estimator` or `from_effects` to create it. Along one feature, it shows the expected rank of the
    class with its band, or the class probabilities stacked from the lowest class up. The prediction for
    missing cells stands at the right of a number. Over two features, colours show the mean score and lines
    where it equals a threshold; missing cells are left out. If a feature has categories, the map has a field
    for each pair of values, with the class in which the mean score lies.

    Parameters
    ----------
    effects : Effects
        Averages of predictions, see `ISBOR.effects`.
    target : "expected" or "probabilities", default="expected"
        What to show along one feature.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn. This and the following attributes are set by `plot`.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    See Also
    --------
    isbor.ISBOR.effects : The numbers.
    ExplanationDisplay : Why a row has its score.
    RelevanceDisplay : How much each feature matters.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import EffectsDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> model = ISBOR(basis="rbf").fit(X, y)
    >>> display = EffectsDisplay.from_estimator(model, 0)  # doctest: +SKIP
    >>> display.figure_.savefig("effect.png")  # doctest: +SKIP
    """

    def __init__(
        self, *, effects: "Effects", target: Literal["expected", "probabilities"] = "expected"
    ) -> None:
        self.effects = effects
        self.target = target

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        features: int | str | tuple[int | str, ...],
        X: ArrayLike | None = None,
        *,
        kind: Literal["partial", "ale"] = "partial",
        grid_size: int = 20,
        coverage: float = 0.9,
        target: Literal["expected", "probabilities"] = "expected",
        ax: "Axes | None" = None,
    ) -> Self:
        """Compute effects and draw them.

        Parameters
        ----------
        estimator : ISBOR or another estimator of this package
            A fitted model.
        features, X, kind, grid_size, coverage
            As in `ISBOR.effects`.
        target : "expected" or "probabilities", default="expected"
            What to show along one feature.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        EffectsDisplay
        """
        require_matplotlib()
        if not hasattr(estimator, "effects"):
            raise TypeError(
                f"{type(estimator).__name__} has no method effects; a fitted estimator of isbor is needed. "
                "For a pipeline, pass its last step, and X as transformed by the steps before."
            )
        check_is_fitted(estimator)
        found = estimator.effects(features, X, kind=kind, grid_size=grid_size, coverage=coverage)
        return cls.from_effects(found, target=target, ax=ax)

    @classmethod
    def from_effects(
        cls,
        effects: "Effects",
        *,
        target: Literal["expected", "probabilities"] = "expected",
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw effects that are computed already.

        Parameters
        ----------
        effects : Effects
            Averages of predictions.
        target, ax
            As in `from_estimator`.

        Returns
        -------
        EffectsDisplay
        """
        require_matplotlib()
        if target not in ("expected", "probabilities"):
            raise ValueError(f"target is {target!r}; 'expected' or 'probabilities' is needed.")
        if effects.expected is None and len(effects.features) == 1:
            raise ValueError(
                "These effects have no class probabilities. Fit the model with probability=True, or draw "
                "effects.score yourself."
            )
        return cls(effects=effects, target=target).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return (6.6, 4.6) if len(self.effects.features) == 1 else (7.0, 5.4)

    def _draw(self, ax: "Axes") -> None:
        if len(self.effects.features) == 2:
            self._draw_map(ax)
            return
        places, is_line = _places(self.effects.values[0])
        if self.target == "expected":
            self._draw_expected(ax, places, is_line)
        else:
            self._draw_probabilities(ax, places, is_line)
        _label_places(ax, self.effects.values[0], places)
        ax.set_xlabel(shorten(self.effects.features[0], _NAME_LENGTH), parse_math=False)
        name = "Accumulated local effects" if self.effects.kind == "ale" else "Partial dependence"
        ax.set_title(name, fontsize=11)

    def _draw_expected(self, ax: "Axes", places: FloatArray, is_line: IntArray) -> None:
        expected, band = np.asarray(self.effects.expected), self.effects.expected_band
        points = np.setdiff1d(np.arange(len(places)), is_line)
        if len(is_line):
            if band is not None:
                low, high = (end[is_line] for end in band)
                ax.fill_between(places[is_line], low, high, color=COLOUR, alpha=0.22, linewidth=0)
            ax.plot(
                places[is_line], expected[is_line], color=COLOUR, linewidth=2.0, marker="o", markersize=3.5
            )
        if len(points):
            errors = None
            if band is not None:
                errors = np.abs(np.stack([end[points] for end in band]) - expected[points])
            ax.errorbar(
                places[points], expected[points], errors, fmt="o", color=COLOUR, capsize=4, markersize=7
            )
        classes = self.effects.classes
        ax.set_ylim(-0.15, len(classes) - 0.85)
        names = [shorten(str(label), _TICK_LENGTH) for label in classes]
        ax.set_yticks(np.arange(len(classes)), names, parse_math=False)
        ax.grid(axis="y", color="#dddddd", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        note = f" (band: {self.effects.coverage:.0%})" if band is not None else ""
        ax.set_ylabel(f"expected rank of the class{note}")

    def _draw_probabilities(self, ax: "Axes", places: FloatArray, is_line: IntArray) -> None:
        from matplotlib import colormaps

        p = np.asarray(self.effects.probabilities)
        below = np.cumsum(np.pad(p, ((0, 0), (1, 0))), axis=1)
        points = np.setdiff1d(np.arange(len(places)), is_line)
        width = 0.8 if not len(is_line) else 0.05 * float(np.ptp(places))
        n = len(self.effects.classes)
        for k, label in enumerate(self.effects.classes):
            colour = colormaps[COLOUR_MAP](k / max(n - 1, 1))
            style: dict[str, Any] = {"color": colour, "edgecolor": "white", "linewidth": 0.6}
            name = shorten(str(label), _TICK_LENGTH)
            if len(is_line):
                x, low, high = places[is_line], below[is_line, k], below[is_line, k + 1]
                ax.fill_between(x, low, high, label=name, **style)
            if len(points):
                shown = f"_{name}" if len(is_line) else name
                ax.bar(places[points], p[points, k], width, below[points, k], label=shown, **style)
        ax.set_ylim(0.0, 1.0)
        ax.set_ylabel("class probabilities")
        handles, names = ax.get_legend_handles_labels()
        # In the order in which they are stacked.
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        legend = ax.legend(handles[::-1], names[::-1], frameon=False, fontsize=9, **place)
        for text in legend.get_texts():
            text.set_parse_math(False)

    def _draw_map(self, ax: "Axes") -> None:
        effects = self.effects
        numeric = [all(isinstance(value, float | None) for value in some) for some in effects.values]
        if all(numeric):
            kept = [[i for i, value in enumerate(some) if value is not None] for some in effects.values]
            x, y = (
                np.array([some[i] for i in own], dtype=np.float64)
                for some, own in zip(effects.values, kept, strict=True)
            )
            score = effects.score[np.ix_(*kept)].T
            surface = ax.pcolormesh(x, y, score, shading="gouraud", cmap=COLOUR_MAP, rasterized=True)
            self._draw_thresholds(ax, x, y, score)
        else:
            surface = ax.pcolormesh(effects.score.T, cmap=COLOUR_MAP, edgecolors="white", linewidth=1.0)
            for axis, some in ((ax.xaxis, effects.values[0]), (ax.yaxis, effects.values[1])):
                names = [shorten(value_text(value), _TICK_LENGTH) for value in some]
                axis.set_ticks(np.arange(len(some)) + 0.5, names, parse_math=False)
                axis.set_tick_params(length=0)
            if len(effects.values[0]) > 6:
                ax.tick_params(axis="x", rotation=35)
            self._label_fields(ax)
        bar = self.figure_.colorbar(surface, ax=ax, label="mean score (lines: thresholds)")
        crossed = effects.thresholds[
            (effects.thresholds > effects.score.min()) & (effects.thresholds < effects.score.max())
        ]
        for threshold in crossed:
            bar.ax.axhline(threshold, color="white", linewidth=1.4)
        ax.set_xlabel(shorten(effects.features[0], _NAME_LENGTH), parse_math=False)
        ax.set_ylabel(shorten(effects.features[1], _NAME_LENGTH), parse_math=False)
        ax.set_title("Partial dependence of the score", fontsize=11)

    def _draw_thresholds(self, ax: "Axes", x: FloatArray, y: FloatArray, score: FloatArray) -> None:
        """Draw where the mean score equals a threshold, and between which classes."""
        from matplotlib.patheffects import withStroke

        effects, places = self.effects, np.arange(len(self.effects.thresholds))
        inside = (effects.thresholds > score.min()) & (effects.thresholds < score.max())
        levels, first = np.unique(effects.thresholds[inside], return_index=True)
        if not len(levels) or min(score.shape) < 2:
            return
        lines = ax.contour(x, y, score, levels=levels, colors="white", linewidths=1.4, linestyles="solid")
        lines.set_path_effects([withStroke(linewidth=2.6, foreground="black")])
        names = {
            level: f"{shorten(str(effects.classes[k]), 12)} | {shorten(str(effects.classes[k + 1]), 12)}"
            for level, k in zip(levels, places[inside][first], strict=True)
        }
        for text in ax.clabel(lines, fmt=names, fontsize=9, inline=False, colors="black"):
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0})
            text.set_parse_math(False)

    def _label_fields(self, ax: "Axes") -> None:
        """Write into each field the class in which its mean score lies."""
        score = self.effects.score
        if score.size > _MOST_CELLS:
            return
        low, high = score.min(), score.max()
        for (i, j), value in np.ndenumerate(score):
            label = self.effects.classes[int(np.searchsorted(self.effects.thresholds, value, side="left"))]
            is_dark = value < low + 0.6 * (high - low)
            colour = "white" if is_dark else "black"
            text = shorten(str(label), 12)
            ax.text(
                i + 0.5, j + 0.5, text, ha="center", va="center", fontsize=9, color=colour, parse_math=False
            )


def _places(values: tuple[Value, ...]) -> tuple[FloatArray, IntArray]:
    """Return where values stand along the axis, and which of them are joined by a line."""
    numbers = [value for value in values if isinstance(value, float)]
    if not numbers or any(isinstance(value, str) for value in values):
        return np.arange(len(values), dtype=np.float64), np.zeros(0, np.intp)
    width = max(numbers) - min(numbers) or 1.0
    aside = max(numbers) + _APART * width
    places = np.array([value if isinstance(value, float) else aside for value in values])
    return places, np.flatnonzero([isinstance(value, float) for value in values])


def _label_places(ax: "Axes", values: tuple[Value, ...], places: FloatArray) -> None:
    """Name categories and missing cells on the horizontal axis."""
    from matplotlib.ticker import MaxNLocator

    if all(isinstance(value, float) for value in values):
        return
    if not any(isinstance(value, float) for value in values):
        names = [shorten(value_text(value), _TICK_LENGTH) for value in values]
        ax.set_xticks(places, names, parse_math=False)
        if sum(map(len, names)) > _LINE_LENGTH:
            ax.tick_params(axis="x", rotation=35)
        ax.set_xlim(-0.6, len(values) - 0.4)
        return
    present = places[[value is not None for value in values]]
    ticks = MaxNLocator(6).tick_values(present.min(), present.max())
    ticks = ticks[(ticks >= present.min()) & (ticks <= present.max() - 0.02 * np.ptp(present))]
    ax.set_xticks([*ticks, places[-1]], [*(f"{tick:g}" for tick in ticks), "missing"])
