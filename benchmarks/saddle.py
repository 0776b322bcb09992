"""The saddle with 10,000 training rows: as good as the true function, with few vectors, soon."""

import argparse

from benchmarks.models import (
    HEADER,
    BoostedTrees,
    Result,
    Split,
    average,
    compare,
    logistic_at,
    model_rows,
    svor,
)
from benchmarks.report import print_machine, print_table, print_target
from isbor import ISBOR
from isbor.datasets import make_saddle, saddle_labels
from isbor.metrics import mean_absolute_error

N_TRAIN, N_TEST, N_SEEDS = 10_000, 11_000, 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.saddle", description=__doc__)
    parser.add_argument(
        "--svor-seeds",
        type=int,
        default=N_SEEDS,
        metavar="N",
        help=f"fit the slow SVOR on the first N of the {N_SEEDS} seeds only",
    )
    svor_seeds = parser.parse_args().svor_seeds

    drawn = [make_saddle(N_TRAIN + N_TEST, random_state=seed, return_score=True) for seed in range(N_SEEDS)]
    splits = [Split(X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]) for X, y, _ in drawn]
    of_truth = [
        Result(mae=mean_absolute_error(y[N_TRAIN:], saddle_labels(score[N_TRAIN:]))) for _, y, score in drawn
    ]
    peer = "SVOR (skordinal), C=100, gamma=1"
    models = {
        'ISBOR(basis="rbf")': lambda: ISBOR(basis="rbf"),
        "ISBOR()": ISBOR,
        peer: lambda: svor(C=100, gamma=1),
        "boosted trees (median)": lambda: BoostedTrees(random_state=0),
        "LogisticAT (skordinal)": logistic_at,
    }
    results = compare(models, splits, fits={peer: svor_seeds})

    print_table(
        f"Saddle: {N_TRAIN:,} training and {N_TEST:,} test rows, mean of {N_SEEDS} seeds",
        HEADER,
        model_rows({"the true f": of_truth, **results}),
    )
    if 0 < svor_seeds < N_SEEDS:
        print(f"SVOR on the first {svor_seeds} seed(s) only.\n")
    ours = average(results['ISBOR(basis="rbf")'])
    print_target("MAE of ISBOR less that of the true f", ours.mae - average(of_truth).mae, 0.0010, 4)
    print_target(
        "vectors, largest of the seeds", max(r.vectors for r in results['ISBOR(basis="rbf")']), 20, 0
    )
    if results[peer]:
        same_seeds = average(results['ISBOR(basis="rbf")'][:svor_seeds])
        ratio = same_seeds.seconds / average(results[peer]).seconds
        print_target("time of ISBOR over that of SVOR", ratio, 0.25, 3)
    print_machine()


if __name__ == "__main__":
    main()
