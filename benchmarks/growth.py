"""Whether more rows give a better model: diamonds, 10,000 to 50,000 training rows, the same test rows.

Beside `ISBOR()`, CatBoost and LightGBM with their defaults, all of them on one thread. The set is read as
`benchmarks.more_sets` says.
"""

import argparse
from pkgutil import resolve_name

import numpy as np
from sklearn.base import ClassifierMixin

from benchmarks.measuring import measured
from benchmarks.more_sets import load_more
from benchmarks.report import number, print_machine, print_table, progress, seconds
from isbor import ISBOR
from isbor.metrics import log_loss

SIZES = (10_000, 20_000, 30_000, 37_758, 40_000, 50_000)
MODELS = {
    "ISBOR()": "isbor:ISBOR",
    "CatBoost": "benchmarks.rivals.catboost:CatBoost",
    "LightGBM": "benchmarks.rivals.lightgbm:LightGBM",
}
"""Where to import each from; the packages of the rivals are extras."""


def unfitted(name: str) -> ClassifierMixin:
    """Return a model that is fitted on one thread."""
    model: ClassifierMixin = resolve_name(MODELS[name])()
    return model.set_params(n_jobs=1) if isinstance(model, ISBOR) else model


def fit(name: str, n_rows: int, shuffle: int) -> tuple[float, float]:
    """Return the log loss on the rows after the first 50,000, and the seconds of the fit."""
    X, y = load_more("diamonds")
    order = np.random.default_rng(shuffle).permutation(len(y))
    train, test = order[:n_rows], order[SIZES[-1] :]
    progress(f"{name}, {n_rows} rows, shuffle {shuffle}")
    model, cost = measured(unfitted(name).fit, X[train], y[train])
    return log_loss(y[test], model.predict_proba(X[test]), labels=model.classes_), cost.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--shuffles", type=int, default=3, help="orders of the rows (3)")
    options = parser.parse_args()
    X, y = load_more("diamonds")
    ISBOR(effort="fast").fit(X[:500], y[:500])  # loads libraries, starts threads
    table = []
    for n_rows in SIZES:
        row = [f"{n_rows:,}"]
        for name in options.models:
            losses, times = zip(*(fit(name, n_rows, k) for k in range(options.shuffles)), strict=True)
            row.append(f"{number(np.mean(losses), 4)} / {seconds(float(np.mean(times)))}")
            row[-1] += f" ({', '.join(number(loss, 4) for loss in losses)})"
        table.append(row)
    title = f"Log loss / seconds, means of {options.shuffles} shuffles (log loss of each)"
    print_table(title, ["training rows", *options.models], table)
    print_machine()


if __name__ == "__main__":
    main()
