"""What restarts of the selection are worth: objective, error and time without and with them."""

import time

from benchmarks.models import Split
from benchmarks.report import number, print_machine, print_table, seconds
from isbor import ISBOR
from isbor.datasets import make_balance_scale, make_saddle
from isbor.metrics import mean_absolute_error

PATIENCE = (0, 2, 5)


def problems() -> list[tuple[str, float, Split]]:
    """Name, width and rows of each problem; the widths are plausible ones, not the best."""
    X, y = make_balance_scale()
    found = [(f"balance scale {seed}", 0.12, Split.of(X, y, 468, seed)) for seed in (1, 5)]
    for n, gamma in ((500, 0.01), (500, 0.3), (2000, 0.1)):
        for seed in (1, 5):
            X, y = make_saddle(n + 11_000, random_state=seed)
            found.append((f"saddle {seed}, {n} rows", gamma, Split.of(X, y, n, seed)))
    return found


def main() -> None:
    rows = []
    for name, gamma, split in problems():
        cells = [f"{name}, γ = {gamma}"]
        for patience in PATIENCE:
            start = time.perf_counter()
            model = ISBOR(gamma=gamma, patience=patience).fit(split.X, split.y)
            elapsed = time.perf_counter() - start
            objective = model.log_evidence_ - model.size_prior * model.n_relevance_
            mae = mean_absolute_error(split.y_test, model.predict(split.X_test))
            cells.append(f"{number(objective, 1)} / {number(mae)} / {seconds(elapsed)}")
        rows.append(cells)
    header = ["problem", *(f"patience {patience}" for patience in PATIENCE)]
    print_table("Objective / test MAE / seconds at a fixed width", header, rows)
    print_machine()


if __name__ == "__main__":
    main()
