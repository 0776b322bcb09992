"""Compilation of the inner loops of the search, before the first fit after an installation.

It happens in another process. Code that was compiled in a process and the same code from the cache may be
optimised in different ways and differ in the last bits; this way all processes use the cache, and the first
fit finds the same model as all others.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

from isbor._core.compiled import cache_folder, cache_key
from isbor._core.parallel import Workers
from isbor.data.rows import canonical_rows
from isbor.data.training import read_training
from isbor.inference.compiled_mode import mode_of_block
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.families.catalogue import FAMILIES, fit_families
from isbor.search.recorder import Recorder
from isbor.search.settings import SearchSettings

__all__ = ["compile_search", "ensure_compiled"]

_SETTINGS = SearchSettings(
    gamma=1.0,
    size_prior=2.0,
    solver="gram",
    n_candidates=20,
    tol=1.0,
    patience=0,
    max_iter=5,
    max_vectors=np.inf,
    n_members=1,
    seed=0,
    preliminary=True,
)


def compile_search() -> None:
    """Load the compiled code; the first time after installation, compile it, in about a minute."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.digitize(X[:, 0] + 0.5 * random.normal(size=60), [-0.5, 0.5])
    rows, _ = canonical_rows(X.copy(), y, np.ones(60))
    with Workers(1) as workers:
        fit_families(list(FAMILIES), read_training(X, y, owner="ISBOR"), _SETTINGS, "fit", workers, None)
        recorder = Recorder("fit", rows.source)
        search_jointly(rows, np.arange(2), JointSettings(max_rounds=2), random, workers, recorder)


_MESSAGE = "isbor: compiling inner loops; once after installation, about a minute\n"
_lock = threading.Lock()
_is_ensured = False


def ensure_compiled() -> None:
    """Compile the search if it is not in the cache, and say so; it takes about a minute."""
    global _is_ensured
    with _lock:
        if _is_ensured:
            return
        folder = cache_folder(mode_of_block)
        mark = None if folder is None else folder / f"{cache_key()}.compiled"
        if mark is None or not mark.exists():
            if sys.stderr is not None:
                sys.stderr.write(_MESSAGE)
            if mark is not None:
                _compile_elsewhere(mark)
        _is_ensured = True


def _compile_elsewhere(mark: Path) -> None:
    """Compile in another process, and leave a mark. If that fails, this process compiles what it needs."""
    source = str(Path(__file__).parents[2])
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    program = "from isbor.search.compilation import compile_search; compile_search()"
    try:
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        mark.touch()
    except (OSError, subprocess.CalledProcessError):
        pass
