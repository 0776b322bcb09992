"""Tables with the defects that real ones have: each must give a sound model, and no warning.

Run it from the root of the repository: the problems are those of the tests.
"""

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.report import number, print_machine, print_table, print_target, progress, seconds
from isbor import ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.metrics import accuracy
from tests.estimators.hard_problems import named_problems, random_problem


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one problem."""

    faults: tuple[str, ...]  # empty if all is well
    seconds: float
    vectors: float = np.nan
    accuracy: float = np.nan

    def cells(self) -> list[str]:
        """Return the entries of the table."""
        numbers = [number(self.vectors, 0), number(self.accuracy, 3), seconds(self.seconds)]
        return [*numbers, "; ".join(self.faults) or "sound"]


_DEFAULTS: dict[str, Any] = {}
# The default compares basis families, at several times the cost: it takes its turn with them.
_PARAMETERS: tuple[dict[str, Any], ...] = (
    {"basis": "rbf"},
    {"metric": "ard"},
    {"basis": "mixed", "n_members": 1},
    _DEFAULTS,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hard_inputs", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="number of random problems")
    count = parser.parse_args().count

    named = {name: attempt(X, y) for name, X, y in named_problems()}
    print_table(
        "Hard inputs, training rows",
        ["problem", "vectors", "accuracy", "seconds", "outcome"],
        [[name, *outcome.cells()] for name, outcome in named.items()],
    )
    failures = {name: outcome for name, outcome in named.items() if outcome.faults}
    elapsed = 0.0
    for seed in range(count):
        outcome = attempt(*random_problem(seed), parameters=_PARAMETERS[seed % len(_PARAMETERS)])
        elapsed += outcome.seconds
        if outcome.faults:
            failures[f"seed {seed}"] = outcome
            print(f"seed {seed}: {'; '.join(outcome.faults)}")
        if (seed + 1) % 100 == 0:
            progress(f"{seed + 1} random problems, {len(failures)} failures so far")
    print(f"{count} random problems in {elapsed:.0f} s.\n")
    print_target(f"failures among {len(named)} named and {count} random problems", len(failures), 0, 0)
    print_machine()
    if failures:
        raise SystemExit(1)


def attempt(
    X: FloatArray, y: IntArray, weight: FloatArray | None = None, *, parameters: Mapping[str, Any] = _DEFAULTS
) -> Outcome:
    """Fit and predict with warnings as errors, and look for faults."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = ISBOR(**parameters).fit(X, y, sample_weight=weight)
            elapsed = time.perf_counter() - start
            faults = find_faults(model, X)
            reached = accuracy(y, model.predict(X), labels=model.classes_, sample_weight=weight)
        except Exception as error:  # whatever it is, it is what this benchmark looks for
            return Outcome((f"{type(error).__name__}: {error}",), time.perf_counter() - start)
    return Outcome(faults, elapsed, model.n_relevance_, reached)


def find_faults(model: ISBOR, X: FloatArray) -> tuple[str, ...]:
    """Return what is unsound about a fitted model and its predictions for the rows."""
    proba = model.predict_proba(X)
    finite = {
        "thresholds_": model.thresholds_,
        "sigma_": model.sigma_,
        "dual_coef_": model.dual_coef_,
        "intercept_": model.intercept_,
        "alpha_": model.alpha_,
        "log_evidence_": model.log_evidence_,
        "probabilities": proba,
        "log probabilities": model.predict_log_proba(X),
        "margins": model.decision_function(X),
        "scores": np.stack(model.latent(X, return_std=True)),
        "bands": np.stack(model.predict_proba_interval(X)),
    }
    laws = {
        "probabilities do not sum to one": np.allclose(proba.sum(axis=1), 1.0, rtol=0.0, atol=1e-9),
        "probabilities are negative": np.all(proba >= 0),
        "thresholds are not in order": np.all(np.diff(model.thresholds_) > 0),
        "labels are not classes": np.isin(model.predict(X), model.classes_).all(),
    }
    faults = [f"{name} not finite" for name, values in finite.items() if not np.isfinite(values).all()]
    return (*faults, *(fault for fault, kept in laws.items() if not kept))


if __name__ == "__main__":
    main()
