"""Sequential sparse Bayesian learning in Gram space.

A pass over the rows expands the log likelihood over the active basis functions and some proposed ones.
Given that expansion the paper's incremental loop (add, delete, reestimate, hundreds of times) runs on
an n × n matrix without touching the data. Then the mode is found on the active functions, other rows are
proposed as centres, and the next pass begins:

    propose → expand (one pass) → moves while they gain → mode of (w, b) → repeat

The moves are exact for the quadratic model of the likelihood, which is crude while the model is far from
its end. So a pass adds at most about as many functions as there are, and is taken back by halves
if the evidence recomputed at the new mode did not rise: the objective never falls from pass to pass on the
same rows.

The first passes run on a stratified sample (a prefix of the rows), which grows by a constant factor
whenever the objective stops rising: only the last passes see all rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from isbor.arrays import FloatArray, IntArray
from isbor.basis import RowDictionary
from isbor.blocks import Workers
from isbor.evidence import (
    Gaussian,
    GramModel,
    Move,
    add,
    best_move,
    condition,
    delete,
    gram_model,
    reestimate,
    residual,
)
from isbor.inputs import TrainingRows
from isbor.posterior import Mode, factorise, find_mode, log_evidence, starting_thresholds
from isbor.statistics import Expansion, expand
from isbor.trace import Callback, Step, StopReason

__all__ = ["GramSettings", "SparseModel", "initial_model", "solve_gram"]

# Σ and μ are refactorised when the moves have cost this many digits.
_DRIFT = 1e-10


@dataclass(frozen=True, slots=True)
class GramSettings:
    size_prior: float = 2.0
    tolerance: float = 1e-2
    max_passes: int = 50
    n_candidates: int = 300
    growth: int = 8
    first_rows: int = 4000


@dataclass(frozen=True, slots=True)
class SparseModel:
    chosen: IntArray
    mode: Mode
    log_evidence: float

    def objective(self, size_prior):
        return self.log_evidence - size_prior * len(self.chosen)


def initial_model(rows, dictionary, workers, chosen=None, alpha=1e-3, thresholds=None, weights=None):
    if chosen is None:
        r = int(rows.y.max()) + 1
        per = max(2, -(-10 // r))
        chosen = np.sort(np.concatenate([np.flatnonzero(rows.y == k)[:per] for k in range(r)]))
    if thresholds is None:
        thresholds = starting_thresholds(rows.y, rows.weight)
    if weights is None:
        weights = np.zeros(len(chosen))
    alpha = np.broadcast_to(alpha, (len(chosen),)).copy()
    return _settle(rows, dictionary, chosen, alpha, weights, thresholds, workers)


def _settle(rows, dictionary, chosen, alpha, weights, thresholds, workers):
    basis = dictionary.basis(chosen)
    mode = find_mode(lambda w, b: expand(rows, basis, w, b, workers), alpha, weights, thresholds)
    return SparseModel(chosen, mode, log_evidence(mode))


def make_moves(model, state, settings, max_additions, max_moves=10_000):
    moves = []
    additions = 0
    while len(moves) < max_moves:
        move = best_move(model, state, size_prior=settings.size_prior, may_add=additions < max_additions)
        if move is None or move.gain < settings.tolerance:
            break
        state = apply(model, state, move)
        if residual(model, state) > _DRIFT:
            state = condition(model, state.active, state.alpha)
        additions += move.kind == "add"
        moves.append(move)
    return state, moves


def apply(model, state, move):
    if move.kind == "add":
        return add(model, state, move.candidate, move.alpha)
    if move.kind == "delete":
        return delete(model, state, move.candidate)
    return reestimate(model, state, move.candidate, move.alpha)


import time
def solve_gram(rows_all, dictionary, model, settings, workers, log=None, first=None):
    N = len(rows_all)
    sizes = [min(N, first or settings.first_rows)]
    while sizes[-1] < N:
        sizes.append(min(N, sizes[-1] * settings.growth))
    stage = 0
    offset = 0
    rows = rows_all.head(sizes[0])
    npass = 0
    T = dict(expand=0, moves=0, mode=0)
    while npass < settings.max_passes:
        npass += 1
        last = stage == len(sizes) - 1
        n_fresh = min(settings.n_candidates, len(rows))
        fresh = (offset + np.arange(n_fresh)) % len(rows)
        offset += n_fresh
        fresh = np.setdiff1d(fresh, model.chosen)
        cand = np.concatenate([model.chosen, fresh])
        basis = dictionary.basis(cand)
        m = len(model.chosen)
        t=time.perf_counter()
        ex = expand(rows, basis, np.concatenate([model.mode.weights, np.zeros(len(fresh))]), model.mode.thresholds, workers)
        T['expand'] += time.perf_counter()-t; t=time.perf_counter()
        g = gram_model(ex)
        s0 = condition(g, np.arange(m), model.mode.alpha)
        maxmoves = 10_000
        while True:
            t=time.perf_counter()
            s, moves = make_moves(g, s0, settings, max(10, m), maxmoves)
            T['moves'] += time.perf_counter()-t; t=time.perf_counter()
            if not moves: 
                new = model; break
            w = np.zeros(len(cand)); w[s.active] = s.mean
            n = len(cand)
            db = factorise(ex.precision[n:, n:]).solve(ex.gradient[n:] - ex.precision[n:, :n] @ (w - ex.weights))
            from isbor.posterior import _longest_ordered_step
            step = _longest_ordered_step(ex.thresholds, db)
            w0 = ex.weights[s.active]
            new = _settle(rows, dictionary, cand[s.active], s.alpha, w0 + step*(s.mean-w0), ex.thresholds+step*db, workers)
            T['mode'] += time.perf_counter()-t
            if new.objective(settings.size_prior) >= model.objective(settings.size_prior) - 1e-9*abs(model.log_evidence):
                break
            if log: log(f"   reject {len(moves)} moves: {model.objective(settings.size_prior):.3f} -> {new.objective(settings.size_prior):.3f}")
            maxmoves = len(moves)//2
            new = model
            if maxmoves == 0: break
        rise = new.objective(settings.size_prior) - model.objective(settings.size_prior)
        model = new
        if log: log(f"pass {npass} rows {len(rows)} cand {len(cand)} moves {len(moves)} (add {sum(v.kind=='add' for v in moves)}) M {len(model.chosen)} ev {model.log_evidence:.3f} obj {model.objective(settings.size_prior):.3f} rise {rise:.3f} amin {model.mode.alpha.min() if m else 0:.2g}")
        if rise < (settings.tolerance*10 if last else 1.0):
            if last: break
            stage += 1
            rows = rows_all.head(sizes[stage])
            b = model.mode
            model = _settle(rows, dictionary, model.chosen, b.alpha, b.weights, b.thresholds, workers)
    if log: log(str({k: round(v,3) for k,v in T.items()}))
    return model
