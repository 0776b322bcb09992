"""How loops over rows and small matrices are compiled: by Numba, without the interpreter lock, and cached.

Compiled functions run on several threads at the same time. Each has one signature: arrays are passed in one
type and layout, so that nothing is compiled twice.

Numba compiles a cached function again if its own file has changed, but not if that of a function it calls
has. So here the cache depends on the files of all compiled functions.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import njit
from numba.core.registry import cpu_target

__all__ = ["cache_folder", "cache_key", "compiled", "compiled_sums"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function: arithmetic as it is written, also if it is called by `compiled_sums`."""
    return cast(F, _cached(njit(nogil=True, error_model="numpy", fastmath=False)(function)))


def compiled_sums(function: F) -> F:
    """Compile a function in which sums may be made in any order, so that they are vectorised.

    Infinities and NaN are respected.
    """
    maths = {"reassoc", "contract", "arcp", "nsz"}
    return cast(F, _cached(njit(nogil=True, error_model="numpy", fastmath=maths)(function)))


def _digest() -> str:
    """Return a digest of the files of all compiled functions."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("compiled*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


_DIGEST = _digest()


def cache_key() -> str:
    """Return a name for the compiled code: it depends on the sources, the compiler and the processor."""
    processor = cpu_target.target_context.codegen().magic_tuple()
    parts = (_DIGEST, numba.__version__, sys.version, *processor)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def cache_folder(function: Any) -> Path | None:
    """Return the folder in which a compiled function is cached; None if there is none to write to."""
    path = function._cache.cache_path
    return None if path is None else Path(path)


def _cached(function: Any) -> Any:
    """Return the function with a cache, if there is a folder to write to."""
    try:
        function.enable_caching()
    except RuntimeError:
        return function
    index = function._cache._cache_file
    index._source_stamp = (index._source_stamp, _DIGEST)
    return function
