"""
A million rows: what do more rows buy?
======================================

A Parquet file with a million rows is fitted block by block: a sample is searched for functions, and their
weights are fitted to all rows. The same file, cut shorter, shows what rows are worth, and what they cost.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isbor import ISBOR
from isbor.metrics import log_loss
from isbor.sources import open_table

NAMES = [f"x{j}" for j in range(8)]


def draw(n, seed):
    """Draw rows of which five features matter, two of them together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + (X[:, 4] > 1)
    y = np.digitize(score + 0.6 * rng.normal(size=n), [-1.5, -0.5, 0.5, 1.5])
    return pd.DataFrame(X, columns=NAMES).assign(grade=y)


test = draw(20_000, seed=1)

# %%
sizes, losses, seconds = [1_000, 10_000, 100_000, 1_000_000], [], []
with TemporaryDirectory() as folder:
    for n in sizes:
        path = Path(folder) / f"{n}.parquet"
        draw(n, seed=0).to_parquet(path)
        begun = time.perf_counter()
        model = ISBOR(effort="fast", basis="mixed").fit(open_table(path, target="grade"))
        seconds.append(time.perf_counter() - begun)
        losses.append(log_loss(test["grade"], model.predict_proba(test[NAMES]), labels=range(5)))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(sizes, losses, marker="o")
left.set(xscale="log", xlabel="rows", ylabel="log loss on 20,000 other rows", title="What rows are worth")
right.plot(sizes, seconds, marker="o", color="#d95f02")
right.set(xscale="log", xlabel="rows", ylabel="seconds of the fit", ylim=(0, None), title="What they cost")
plt.show()

# %%
# **Answer.** The first hundred thousand rows find the shape of the score; the rest hardly change it. A fit
# to a million rows takes seconds, because the search sees 128,000 of them at most. :doc:`/large-data` has
# files that are larger still, and what is needed for a billion rows.
