"""Compilation of the inner loops of the search, before the first fit after an installation.

It happens in other processes. Code that was compiled in a process and the same code from the cache may be
optimised in different ways and differ in the last bits; this way all processes use the cache, and the first
fit finds the same model as all others.

There are two processes, side by side. No compiled function that Python calls is compiled by both, nor calls
one that the other compiles; so it does not matter which is faster.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from isbor._core.compiled import cache_folder, cache_key
from isbor._core.parallel import Workers
from isbor.data.rows import TrainingRows, canonical_rows
from isbor.data.training import read_training
from isbor.inference.compiled_mode import mode_of_block
from isbor.inference.evidence import GramModel, best_move, make_moves, weight_posterior
from isbor.inference.expansion import columns_of, expand
from isbor.inference.mode import starting_thresholds
from isbor.inference.shape import fit_shape, shape_at_rows
from isbor.inference.sparse import fit_weights
from isbor.model.basis import Functions
from isbor.model.compiled_basis import mean_squared_change
from isbor.model.cuts import RowShape, row_thresholds
from isbor.prediction.probabilities import class_probabilities
from isbor.search.adaptive.compiled_gains import Fitted
from isbor.search.adaptive.gains import Directions, Gains, best_candidates
from isbor.search.adaptive.joint import JointSettings, search_jointly
from isbor.search.adaptive.proposals import Proposals
from isbor.search.adaptive.training import Trainable, trained_parameters
from isbor.search.ascent import move_functions
from isbor.search.families.catalogue import FAMILIES, fit_families
from isbor.search.recorder import Recorder
from isbor.search.settings import SearchSettings

__all__ = ["compile_modes", "compile_proposals", "compile_search", "ensure_compiled", "is_compiled"]

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

_X = np.random.default_rng(0).normal(size=(60, 2))
_Y = np.digitize(_X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=60), [-0.7, 0.0, 0.7])


def compile_search() -> None:
    """Load the compiled code, and compile what is missing."""
    rows, random = _rows(), np.random.default_rng(0)
    with Workers(1) as workers:
        fit_families(
            list(FAMILIES),
            read_training(_X, _Y, owner="ISBOR", workers=workers),
            _SETTINGS,
            "fit",
            workers,
            None,
        )
        recorder = Recorder("fit", rows.source)
        search_jointly(rows, np.arange(2), JointSettings(max_rounds=2), random, workers, recorder)


def compile_modes() -> None:
    """Compile what evaluates functions, finds modes, raises the evidence along its gradient, and predicts."""
    rows, ones = _rows(), np.ones(4)
    functions = Functions(rows.X[:4], np.ones((4, 2)), ones < 0, np.zeros(4), np.arange(4), ones)
    functions = functions.centred_on(rows)
    thresholds = starting_thresholds(rows.y, rows.weight)
    with Workers(1) as workers:
        model = fit_weights(rows, functions, ones, np.zeros(4), thresholds, workers)
        columns = columns_of(rows, functions, workers)
        class_probabilities(model.latent(rows.X), thresholds)
        move_functions(rows, model, 1, workers)
        shape = fit_shape(rows, functions, columns, model.mode, np.zeros((1, 4)), ones[:1], workers)
        shape_at_rows(rows, columns, shape.weights, len(thresholds), workers)
        row_thresholds(thresholds, RowShape(np.ones(1), np.ones((len(thresholds) - 1, 1))))
        expand(rows, columns, model.mode.weights, thresholds, workers)
        place, one = np.zeros(1, np.intp), np.ones((1, 1))
        mean_squared_change(one, one, one, ones[:1], 1, place, place, ones[:1])
        Gains.of(rows, model, workers)


def compile_proposals() -> None:
    """Compile what draws functions, computes their gains, trains them, and makes moves."""
    rows, random = _rows(), np.random.default_rng(0)
    n, thresholds = len(rows), starting_thresholds(rows.y, rows.weight)
    proposals = Proposals.of(random, rows, np.arange(2))
    fresh = proposals.fresh(4)
    functions = fresh.functions(rows.X)
    shapes = (2, 1, n), (1, n, 1), (1, n), (1, n), (1, n)
    gains = Gains(Fitted(*(np.ones(shape, np.float32) for shape in shapes)))
    known = proposals.children(fresh, 4).followed_by(proposals.siblings(fresh, 4))
    oblique = proposals.oblique(4, Directions.of(gains))
    with Workers(1) as workers:
        best_candidates(known, oblique, gains, size_prior=2.0, keep=4, n_steps=1, workers=workers)
    start = Trainable(functions, np.zeros(4), thresholds, np.zeros((1, 4)), np.ones(1))
    trained_parameters(rows, start, 1, 0.01, random)
    model = GramModel(np.eye(4), np.ones(4), np.zeros(4))
    state = weight_posterior(model, np.arange(1), np.ones(1))
    best_move(state, model.floor)
    make_moves(model, state, np.zeros(4), 1.0, 1, 1.0)


def _rows() -> TrainingRows:
    rows, _ = canonical_rows(_X.copy(), _Y, np.ones(len(_X)))
    return rows


_MESSAGE = "isbor: compiling inner loops; once after installation, about half a minute\n"
_lock = threading.Lock()
_is_ensured = False


def is_compiled() -> bool:
    """Return whether `ensure_compiled` has nothing to do."""
    if _is_ensured:
        return True
    mark = _mark()
    return mark is not None and mark.exists()


def ensure_compiled() -> None:
    """Compile the search if it is not in the cache, and say so; it takes about half a minute."""
    global _is_ensured
    with _lock:
        if _is_ensured:
            return
        mark = _mark()
        if mark is None or not mark.exists():
            if sys.stderr is not None:
                sys.stderr.write(_MESSAGE)
            if mark is not None:
                _compile_elsewhere(mark)
        _is_ensured = True


def _mark() -> Path | None:
    """Return the file that says that the cache is complete, None if there is no cache."""
    folder = cache_folder(mode_of_block)
    return None if folder is None else folder / f"{cache_key()}.compiled"


def _compile_elsewhere(mark: Path) -> None:
    """Compile in other processes, and leave a mark. If that fails, this process compiles what it needs."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for other in mark.parent.glob("*.compiled"):  # of versions whose code is overwritten now
            other.unlink(missing_ok=True)
        for function in (compile_modes, compile_proposals):
            processes.append(_start(function))
        if not any([process.wait() for process in processes]):
            mark.touch()
    except OSError:
        pass
    finally:
        for process in processes:
            process.kill()  # if this one was interrupted


def _start(function: Callable[[], None]) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of this module."""
    source = str(Path(__file__).parents[2])
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Without the search for cycles of objects, it takes a tenth less time.
    program = f"import gc; gc.disable(); from {__name__} import {function.__name__}; {function.__name__}()"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
