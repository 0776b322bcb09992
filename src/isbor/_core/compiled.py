"""How loops over rows and small matrices are compiled: by Numba, without the interpreter lock, and cached.

Compiled functions run on several threads at the same time. Each has one signature: arrays are passed in one
type and layout, and variables where others pass variables, so that nothing is compiled twice.

Only functions that Python calls are cached. What they call is compiled with them: the compiler would optimise
code from the cache in another way. Numba compiles a cached function again if its own file has changed, but
not if that of a function it calls has. So here the cache depends on the files of all compiled functions.

Most of the time of compilation goes to layers of functions, as each is optimised again with those it calls,
and to statements that bring in much of Numba: assignments of arrays to slices and reductions, which loops
can replace.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import njit
from numba.core.registry import cpu_target

__all__ = ["cache_folder", "cache_key", "compiled", "compiled_sums", "inlined", "inner", "inner_sums"]

F = TypeVar("F", bound=Callable[..., Any])


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Sums may be made in any order, so that they are vectorised. Infinities and NaN are respected.
_SUMS = {"reassoc", "contract", "arcp", "nsz"}
# Where nothing is said about it (`fastmath`), a function takes over the arithmetic of the one that calls it.
_jit: Any = njit  # its types know only some of the options


def compiled(function: F) -> F:
    """Compile a function that Python calls."""
    return cast(F, _cached(_jit(fastmath=False, **_OPTIONS)(function)))


def compiled_sums(function: F) -> F:
    """Compile a function that Python calls, in which sums may be made in any order."""
    return cast(F, _cached(_jit(fastmath=_SUMS, **_OPTIONS)(function)))


def inner(function: F) -> F:
    """Compile a function that only compiled functions call, together with each of them."""
    return cast(F, _jit(fastmath=False, **_OPTIONS)(function))


def inner_sums(function: F) -> F:
    """Compile a function like `inner`, in which sums may be made in any order."""
    return cast(F, _jit(fastmath=_SUMS, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """Compile a function as a part of the only one that calls it: as if its lines were there."""
    return cast(F, _jit(inline="always", **_OPTIONS)(function))


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
    # Numba compares the version before it opens the rest of a file, which may name classes that are gone.
    index = function._cache._cache_file
    index._version = f"{index._version} {_DIGEST}"
    return function
