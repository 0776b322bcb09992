"""`TraceDisplay`: evidence and size of the model, step by step."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isbor._core.types import FloatArray, IntArray
from isbor.plots.common import COLOUR, SECOND_COLOUR, Display, axes_below, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    from isbor._core.trace import Step

__all__ = ["TraceDisplay"]

_STRIP_SHARE, _GAP_SHARE = 0.36, 0.05  # of the height
_CHARACTER = 0.014  # share of the width that a character of the name of a stage needs
_FEW_STEPS = 60  # with more, steps have no points


class TraceDisplay(Display):
    """How a fit went: log evidence and number of functions after each step of its search.

    Use `from_estimator` to create it. Runs of the search, such as those of the members of an average, follow
    one another from left to right, on alternating backgrounds, with a line of their own each. After a step
    that refits the noise, marked by a triangle, log evidences are conditional on the new noise and not
    comparable with those before. Steps that only put together a starting model are left out.

    Parameters
    ----------
    steps : sequence of Step
        The trace of a fit, `trace_`.

    Attributes
    ----------
    evidence : ndarray of shape (n_steps,)
        Log evidence after each step that is shown; for each distinct row, if steps use different numbers of
        rows.
    size : ndarray of shape (n_steps,)
        Number of functions after each step.
    is_per_row : bool
        Whether `evidence` is that for each row.
    ax_ : matplotlib Axes
        The axes of the evidence. This and the following attributes are set by `plot`.
    strip_ : matplotlib Axes
        The axes of the size, in the lower part of `ax_`.
    figure_ : matplotlib Figure
        The figure of both.
    lines_ : list of (Line2D, Line2D)
        Evidence and size of each run.
    noise_ : matplotlib Line2D or None
        The steps that refit the noise.
    stages_ : list of matplotlib Text
        The names of the stages, if there are several.

    Examples
    --------
    >>> from isbor import ISBOR
    >>> from isbor.datasets import make_saddle
    >>> from isbor.plots import TraceDisplay
    >>> X, y = make_saddle(500, random_state=0)
    >>> model = ISBOR(basis="rbf").fit(X, y)
    >>> display = TraceDisplay.from_estimator(model)  # doctest: +SKIP
    >>> bool(display.size[-1] == model.n_relevance_)  # doctest: +SKIP
    True
    """

    def __init__(self, *, steps: "Sequence[Step]") -> None:
        self.steps = steps
        following = [_start_of(step) for step in steps[1:]]
        shown = [
            step
            for step, after in zip(steps, [*following, None], strict=False)
            if step.kind != "start" or after != _start_of(step)
        ]
        self._shown = shown
        self.size: IntArray = np.array([step.n_active for step in shown], dtype=np.intp)
        n_rows = np.array([step.n_rows for step in shown])
        evidence = np.array([step.log_evidence for step in shown])
        self.is_per_row = bool(len(shown)) and bool(np.ptp(n_rows))
        self.evidence: FloatArray = evidence / n_rows if self.is_per_row else evidence

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: "Axes | None" = None) -> Self:
        """Plot the trace of a fitted model.

        Parameters
        ----------
        estimator : ISBOR or SBOR
            A fitted model.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        TraceDisplay
        """
        require_matplotlib()
        check_is_fitted(estimator)
        if not hasattr(estimator, "trace_"):
            raise TypeError(
                f"{type(estimator).__name__} has no trace_; a fitted ISBOR or SBOR is needed. For a "
                "pipeline, pass its last step."
            )
        return cls(steps=estimator.trace_).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 8.0, 5.4

    def _draw(self, ax: "Axes") -> None:
        from matplotlib.ticker import MaxNLocator

        strip = axes_below(ax, _STRIP_SHARE, _GAP_SHARE)
        self.strip_, places = strip, np.arange(1, len(self._shown) + 1)
        marker = "o" if len(places) <= _FEW_STEPS else ""
        self.lines_: list[tuple[Line2D, Line2D]] = []
        for number, part in enumerate(_parts([(step.stage, step.run) for step in self._shown])):
            if number % 2:
                for one in (ax, strip):
                    one.axvspan(part.start + 0.5, part.stop + 0.5, color="0.94", linewidth=0, zorder=0)
            style: dict[str, Any] = {"color": COLOUR, "linewidth": 1.5, "marker": marker, "markersize": 3}
            (evidence,) = ax.plot(places[part], self.evidence[part], **style)
            (size,) = strip.plot(places[part], self.size[part], drawstyle="steps-post", **style)
            self.lines_.append((evidence, size))
        noise = np.array([step.kind == "noise" for step in self._shown], dtype=np.bool_)
        self.noise_: Line2D | None = None
        if noise.any():
            (self.noise_,) = ax.plot(
                places[noise],
                self.evidence[noise],
                "^",
                color=SECOND_COLOUR,
                markersize=5.5,
                label="noise refitted",
                zorder=3,
            )
            ax.legend(loc="lower right", fontsize="small")
        self.stages_: list[Text] = self._draw_stages(ax)
        ax.set_ylabel("log evidence per row, in nats" if self.is_per_row else "log evidence, in nats")
        ax.set_xlim(0, max(len(places), 1) + 1)
        strip.set_ylim(0.0, 1.08 * max(self.size.max(initial=0), 1))
        strip.set(xlabel="step", ylabel="functions")
        for axis in (strip.xaxis, strip.yaxis):
            axis.set_major_locator(MaxNLocator(8 if axis is strip.xaxis else 4, integer=True, min_n_ticks=1))
        for one in (ax, strip):
            one.grid(axis="y", color="0.88", linewidth=0.7)
            one.set_axisbelow(True)
            one.spines[["top", "right"]].set_visible(False)
        title = f"{len(self.lines_)} runs" if len(self.lines_) != 1 else "1 run"
        ax.set_title(f"Trace of the fit: {title}", fontsize=11, pad=20 if self.stages_ else 6)

    def _draw_stages(self, ax: "Axes") -> "list[Text]":
        """Draw the names of the stages above the axes, if there are several."""
        stages = [step.stage for step in self._shown]
        if len(set(stages)) < 2:
            return []
        return [
            ax.text(
                0.5 * (part.start + part.stop + 1),
                1.02,
                stages[part.start],
                ha="center",
                va="bottom",
                transform=ax.get_xaxis_transform(),
                fontsize=9,
                color="0.3",
            )
            for part in _parts(stages)
            if part.stop - part.start > _CHARACTER * len(stages[part.start]) * len(stages)
        ]


def _start_of(step: "Step") -> tuple[str, int] | None:
    """Return the run that the step belongs to the start of; None if it is no such step."""
    return (step.stage, step.run) if step.kind == "start" else None


def _parts(keys: Sequence[Any]) -> list[slice]:
    """Return the runs of equal keys."""
    parts, first = [], 0
    for _, group in groupby(keys):
        last = first + sum(1 for _ in group)
        parts.append(slice(first, last))
        first = last
    return parts
