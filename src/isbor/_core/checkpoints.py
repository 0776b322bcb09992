"""Checkpoints: results of the finished steps of a long fit, kept in a folder.

The results of the steps of a fit depend on the parameters and the data only. A step may consist of others,
some of which are computed at the same time. Each result is written as soon as it is known, to a file that
appears as a whole or not at all. If the same fit is called again, it reads the results of the steps that were
finished and computes the others, so it ends with the same model as if it had not been interrupted. A finished
fit removes the folder.

Files are pickled, so a folder is to be trusted like the program that wrote it.
"""

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, cast

from joblib import hash as digest_of

from isbor._core.warnings import warn_user
from isbor._core.whole_files import UNFINISHED, write_whole
from isbor._version import __version__

__all__ = ["Checkpoint"]

T = TypeVar("T")

_FIT = "fit"  # the file that says which fit the folder belongs to


class Checkpoint:
    """The results of the finished steps of a fit; without a folder, nothing is kept.

    `parameters` are all that a fit depends on besides the data.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, parameters: object = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._parameters = parameters
        if self._folder is not None:
            with self._accessed():
                is_file = self._folder.exists() and not self._folder.is_dir()
            if is_file:
                raise ValueError(f"checkpoint is {str(self._folder)!r}, which is a file; a folder is needed.")

    def begin(self, *data: object) -> None:
        """Begin a fit to these data, or go on with it."""
        if self._folder is None:
            return
        fit = {"version of isbor": __version__, "parameters": self._parameters, "data": data}
        here = [f"{name}: {digest_of(value)}" for name, value in fit.items()]
        file, name = self._folder / _FIT, str(self._folder)
        with self._accessed():
            self._folder.mkdir(parents=True, exist_ok=True)
            if not any(not other.name.startswith(UNFINISHED) for other in self._folder.iterdir()):
                write_whole(file, "\n".join(here).encode())
            there = file.read_text(errors="replace").split("\n") if file.exists() else None
        if there is None:
            raise ValueError(
                f"The folder {name!r} holds other files. Pass an empty or a new folder as checkpoint."
            )
        if [line.partition(": ")[0] for line in there] != list(fit):
            raise ValueError(f"The file {str(file)!r} is damaged. Remove the folder {name!r} to begin anew.")
        other = [what for what, line, own in zip(fit, there, here, strict=True) if line != own]
        if other:
            raise ValueError(
                f"The checkpoint in {name!r} belongs to another fit; what differs: {', '.join(other)}. Pass "
                "another folder, or remove this one to begin anew."
            )

    def once(self, step: str, compute: Callable[[], T], is_whole: Callable[[], bool] = lambda: True) -> T:
        """Return the result of a step, computed if it is not known yet.

        `is_whole` says after the step whether its result is to be kept.
        """
        if self._folder is None:
            return compute()
        file = self._folder / step.replace(" ", "-")
        if file.exists():
            with self._accessed():
                check, _, content = file.read_bytes().partition(b"\n")
            if sha256(content).hexdigest().encode() == check:
                return cast(T, pickle.loads(content))
            warn_user(f"The file {str(file)!r} is damaged; the step {step!r} is computed again.", UserWarning)
        result = compute()
        if is_whole():
            content = pickle.dumps(result)
            with self._accessed():
                write_whole(file, sha256(content).hexdigest().encode() + b"\n" + content)
        return result

    def end(self) -> None:
        """Remove the folder: the fit has ended. If that fails, the fit is not lost with it."""
        if self._folder is not None:
            with suppress(OSError):
                # The file that says whose folder it is goes last, in case the program is killed here.
                for file in sorted(self._folder.iterdir(), key=lambda file: file.name == _FIT):
                    file.unlink()
                self._folder.rmdir()

    @contextmanager
    def _accessed(self) -> Iterator[None]:
        """Say what to do if the folder cannot be read or written to."""
        try:
            yield
        except OSError as error:
            raise OSError(
                f"The checkpoint folder {str(self._folder)!r} cannot be used: {error}. Make it readable and "
                "writable, pass another folder, or leave out checkpoint."
            ) from error
