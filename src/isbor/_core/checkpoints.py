"""Checkpoints: results of the finished steps of a long fit, kept in a folder.

A fit is a sequence of steps whose results depend on the parameters and the data only. Each result is
written as soon as it is known, to a file that appears as a whole or not at all. If the same fit is called
again, it reads the results of the steps that were finished and computes the others, so it ends with the same
model as if it had not been interrupted. A finished fit removes the folder.

Files are pickled, so a folder is to be trusted like the program that wrote it.
"""

import os
import pickle
from collections.abc import Callable
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
        if self._folder is not None and self._folder.exists() and not self._folder.is_dir():
            raise ValueError(f"checkpoint is {str(self._folder)!r}, which is a file; a folder is needed.")

    def begin(self, *data: object) -> None:
        """Begin a fit to these data, or go on with it."""
        if self._folder is None:
            return
        fit = digest_of((__version__, self._parameters, data))
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / _FIT
        if not file.exists():
            if any(not other.name.startswith(UNFINISHED) for other in self._folder.iterdir()):
                raise ValueError(
                    f"The folder {str(self._folder)!r} holds other files. Pass an empty or a new folder as "
                    "checkpoint."
                )
            write_whole(file, fit.encode())
        elif file.read_bytes() != fit.encode():
            raise ValueError(
                f"The checkpoint in {str(self._folder)!r} belongs to another fit: parameters, data or the "
                "version of isbor differ. Pass another folder, or remove this one to begin anew."
            )

    def once(self, step: str, compute: Callable[[], T]) -> T:
        """Return the result of a step, computed if it is not known yet."""
        if self._folder is None:
            return compute()
        file = self._folder / step.replace(" ", "-")
        if file.exists():
            check, _, content = file.read_bytes().partition(b"\n")
            if sha256(content).hexdigest().encode() == check:
                return cast(T, pickle.loads(content))
            warn_user(f"The file {str(file)!r} is damaged; the step {step!r} is computed again.", UserWarning)
        result = compute()
        content = pickle.dumps(result)
        write_whole(file, sha256(content).hexdigest().encode() + b"\n" + content)
        return result

    def end(self) -> None:
        """Remove the folder: the fit has ended."""
        if self._folder is not None:
            for file in self._folder.iterdir():
                file.unlink()
            self._folder.rmdir()
