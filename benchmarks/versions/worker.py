"""One process that fits what it is asked to, and says how long it took: a script for any version of isbor.

Requests come pickled on standard input, replies go to standard output; what libraries print goes to standard
error. Only public names of isbor are used, and nothing else of this repository.
"""

import gc
import os
import pickle
import platform
import sys
import time
from importlib.metadata import version
from typing import Any


def main() -> None:
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:  # the command has ended
            return
        try:
            reply = fit(**request)
        except Exception as error:
            reply = {"failed": f"{type(error).__name__}: {error}"}
        pickle.dump(reply, replies)
        replies.flush()


def fit(model: str, parameters: dict[str, Any], threads: int, X: Any, y: Any, X_test: Any) -> dict[str, Any]:
    """Return seconds of the clock and of the processor, the number of functions, and probabilities."""
    package, estimator = unfitted(model, parameters, threads)
    gc.collect()
    clock, processor = time.perf_counter(), time.process_time()
    estimator.fit(X, y)
    seconds = {"fit": time.perf_counter() - clock, "cpu": time.process_time() - processor}
    packages = dict.fromkeys(("isbor", "numpy", "scipy", "scikit-learn", package))
    return {
        "seconds": seconds,
        "vectors": getattr(estimator, "n_relevance_", None),
        "classes": estimator.classes_,
        "proba": estimator.predict_proba(X_test),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in packages},
    }


def unfitted(model: str, parameters: dict[str, Any], threads: int) -> tuple[str, Any]:
    """Return the package of a model and a new estimator; a peer has its defaults."""
    if model == "CatBoost":
        from catboost import CatBoostClassifier

        return "catboost", CatBoostClassifier(thread_count=threads, verbose=False, allow_writing_files=False)
    if model == "LightGBM":
        from lightgbm import LGBMClassifier

        return "lightgbm", LGBMClassifier(n_jobs=threads, verbose=-1)
    if model == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return "scikit-learn", HistGradientBoostingClassifier(random_state=0)  # OMP_NUM_THREADS threads
    from isbor import ISBOR

    return "isbor", ISBOR(n_jobs=threads, **parameters)


if __name__ == "__main__":
    main()
