"""Fits on a Dask cluster of this machine: what a second worker gains, and how many bytes travel.

Workers have one thread each. The rows are read from Parquet files in each pass.
"""

import argparse
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from benchmarks.report import number, print_machine, print_table, print_target, progress
from isbor import ISBOR, sources
from isbor.data.blocks import Block

N_FEATURES = 8
ROWS_OF_FILE = 50_000
REPEATS = 2  # fits on each cluster, after one that does not count


class Observed:
    """A table on a cluster that records what its passes take."""

    def __init__(self, table: Any, client: Client) -> None:
        self._table = table
        self._client = client
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.busiest: dict[str, list[float]] = defaultdict(list)  # processor seconds of that worker
        self.sent: dict[str, list[int]] = defaultdict(list)  # bytes from workers to others and the client
        self.received: dict[str, list[int]] = defaultdict(list)  # bytes by the client

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the table."""
        return self._table.blocks()

    def summarised(self, of_block: Callable[[Block], Any], merged: Callable[[Any, Any], Any]) -> Any:
        """Return what the table returns, and record what it took."""
        label = of_block.label
        cpu = self._client.run(time.process_time)
        before, start = self._sent_so_far(), time.perf_counter()
        result = self._table.summarised(of_block, merged)
        self.seconds[label].append(time.perf_counter() - start)
        self.sent[label].append(self._sent_so_far() - before)
        now = self._client.run(time.process_time)
        self.busiest[label].append(max(now[worker] - cpu[worker] for worker in now))
        self.received[label].append(len(pickle.dumps(result)))
        return result

    def _sent_so_far(self) -> int:
        return sum(self._client.run(_sent).values())


def _sent(dask_worker: Any) -> int:
    return dask_worker.transfer_outgoing_bytes_total


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dask_scaling", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="more than the 128,000 of a sample")
    rows = parser.parse_args().rows

    with TemporaryDirectory() as folder:
        write(Path(folder), rows)
        observed = {n_workers: fit(folder, n_workers) for n_workers in (1, 2)}
    one, two = observed[1], observed[2]
    print_table(
        f"Steps of a fit to {rows:,} rows of {N_FEATURES} features, medians",
        [
            "step",
            "1 worker, s",
            "2 workers, s",
            "gain",
            "gain by processor time",
            "sent by 2 workers, kB",
            "received by the client, kB",
        ],
        [
            [
                label,
                *(number(median(table.seconds[label]), 2) for table in (one, two)),
                number(median(one.seconds[label]) / median(two.seconds[label]), 2),
                number(median(one.busiest[label]) / median(two.busiest[label]), 2),
                number(median(two.sent[label]) / 1e3, 0),
                number(median(two.received[label]) / 1e3, 0),
            ]
            for label in one.seconds
        ],
    )
    ratio = median(two.seconds["pass"]) / median(one.seconds["pass"])
    print_target("time of a pass with 2 workers over that with 1", ratio, 1 / 1.6, 2)
    print("By processor time: that of the busiest worker, which other programs on the machine disturb less.")
    print_machine()


def write(folder: Path, rows: int) -> None:
    """Write the table as Parquet files."""
    rng = np.random.default_rng(0)
    for k, first in enumerate(range(0, rows, ROWS_OF_FILE)):
        X = rng.normal(size=(min(ROWS_OF_FILE, rows - first), N_FEATURES))
        score = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=len(X))
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_FEATURES)])
        frame["stars"] = 1 + np.digitize(score, [-1.5, 0.0, 1.5])
        frame.to_parquet(folder / f"{k:04}.parquet")


def fit(folder: str, n_workers: int) -> Observed:
    """Fit on a cluster, and return what its passes took."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        table = sources.open_table(dd.read_parquet(folder), target="stars")
        ISBOR(effort="fast").fit(Observed(table, client))  # libraries are loaded
        observed = Observed(table, client)
        for _ in range(REPEATS):
            model = ISBOR(effort="fast").fit(observed)
        progress(
            f"{n_workers} worker(s): {len(observed.seconds['pass']) // REPEATS} passes, "
            f"{model.n_relevance_} functions"
        )
    return observed


if __name__ == "__main__":
    main()
