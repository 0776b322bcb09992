"""Progress of a fit, on standard error: one line that is kept up to date, or a line for each step.

A thread of its own writes the line. The fit only leaves its latest step here, from whatever thread, so that
thousands of steps cost nothing, and the clock goes on while one takes long. How long the rest will take is
not said: nobody knows how many passes a search will need.
"""

import os
import sys
import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Self, TextIO

from isbor._core.trace import Callback, Stage, Step

__all__ = ["Progress"]

_DOING: dict[Stage, str] = {
    "selection": "comparing families",
    "width": "choosing the width",
    "fit": "fitting",
    "all rows": "passing over all rows",
}
_REDRAWN = 0.1  # seconds from one state of the line to the next
_REPEATED = 1.0  # where a line cannot be overwritten, and each state is a line of its own
_USUAL_COLUMNS = 80  # of a terminal that does not say


class Progress:
    """A callback that shows the steps of a fit and hands them on, to be used in a `with` statement."""

    summary: str  # shown at the end, after the time

    def __init__(self, name: str, *, every_step: bool, callback: Callback | None) -> None:
        self.summary = ""
        self._name = name
        self._every_step = every_step
        self._callback = callback
        self._stream: TextIO | None = sys.stderr  # None in a process without one
        self._overwrites = _can_overwrite(self._stream)
        self._begun = time.perf_counter()
        self._latest: Step | None = None
        self._shown = ""  # on the line that the cursor is on
        self._lock = threading.Lock()  # held by the thread that writes
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._keep_showing, name="progress of a fit", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._writer.join()
        if error_type is None:
            self._show(f"fitted in {self._time()}: {self.summary}", last=True)
        elif self._shown:
            self._write("\n")  # the error's traceback begins on a line of its own

    def __call__(self, step: Step) -> None:
        """Note a step, and hand it on."""
        if self._every_step:
            self._write(f"[{self._name}] {step}\n")
        elif step.kind in ("mode", "ascent", "noise"):  # the others describe a model half changed
            self._latest = step
        if self._callback is not None:
            self._callback(step)

    def _keep_showing(self) -> None:
        while not self._ended.wait(_REDRAWN if self._overwrites else _REPEATED):
            step = self._latest
            if step is not None:
                self._show(
                    f"{self._time()}, {_DOING[step.stage]}: {step.n_rows} rows, {step.n_active} functions, "
                    f"log evidence {step.log_evidence:.1f}"
                )

    def _show(self, text: str, *, last: bool = False) -> None:
        """Write a line, over the one before if that is possible."""
        line = f"[{self._name}] {text}"
        if not self._overwrites:
            self._write(f"{line}\n")
            return
        room = _columns(self._stream) - 1
        if not last and len(line) > room:  # a line that is wrapped cannot be overwritten
            line = f"{line[: room - 3]}..."
        self._write(f"\r{line.ljust(len(self._shown))}" + "\n" * last)
        self._shown = line

    def _time(self) -> str:
        """Return the time since the beginning: "9.3 s", or "0:01:30" in hours, minutes and seconds."""
        seconds = time.perf_counter() - self._begun
        return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=int(seconds)))

    def _write(self, text: str) -> None:
        # A fit goes on even if nobody can see it: there may be no stream, it may be closed or broken, and
        # those that other programs put in its place may fail as they like.
        with self._lock:
            try:
                if self._stream is not None:
                    self._stream.write(text)
                    self._stream.flush()
            except Exception:
                self._stream = None


def _can_overwrite(stream: TextIO | None) -> bool:
    """Return whether a line can be written over: on a terminal and in a notebook, which says it is none."""
    try:
        return stream is not None and (stream.isatty() or type(stream).__module__ == "ipykernel.iostream")
    except Exception:
        return False


def _columns(stream: TextIO | None) -> int:
    try:
        columns = 0 if stream is None else os.get_terminal_size(stream.fileno()).columns
    except Exception:
        columns = 0
    return columns or _USUAL_COLUMNS
