"""What restarts of the search are worth: objective, error and time without and with them."""

from collections.abc import Iterator

from benchmarks.measuring import measured
from benchmarks.report import number, print_machine, print_table, seconds
from isbor import ISBOR
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import make_balance_scale, make_saddle
from isbor.experiments import Holdout
from isbor.metrics import mean_absolute_error

PATIENCE = (0, 2, 5)
SEEDS = (1, 5)


def problems() -> Iterator[tuple[str, float, int, int, tuple[FloatArray, IntArray]]]:
    """Yield name, width, training rows, seed and table; the widths are plausible ones, not the best."""
    for seed in SEEDS:
        yield "balance scale", 0.12, 468, seed, make_balance_scale()
    for n, gamma in ((500, 0.01), (500, 0.3), (2000, 0.1)):
        for seed in SEEDS:
            yield "saddle", gamma, n, seed, make_saddle(n + 11_000, random_state=seed)


def main() -> None:
    rows = []
    for name, gamma, n_train, seed, (X, y) in problems():
        train, test = Holdout(n_train).split(y, seed, 0)
        cells = [f"{name} {seed}, {n_train} rows, γ = {gamma}"]
        for patience in PATIENCE:
            model, cost = measured(ISBOR(gamma=gamma, patience=patience).fit, X[train], y[train])
            objective = model.log_evidence_ - model.size_prior * model.n_relevance_
            mae = mean_absolute_error(y[test], model.predict(X[test]))
            cells.append(f"{number(objective, 1)} / {number(mae, 4)} / {seconds(cost.seconds)}")
        rows.append(cells)
    header = ["problem", *(f"patience {patience}" for patience in PATIENCE)]
    print_table("Objective / test MAE / seconds at a fixed width", header, rows)
    print_machine()


if __name__ == "__main__":
    main()
