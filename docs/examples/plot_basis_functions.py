"""
What is in a model?
===================

The score of ``ISBOR(basis="rbf")``, the model of the paper, is a constant plus a few bumps, each centred on a
training row. Which rows get a bump, and how many, is decided by the evidence. How does that look?
"""

import matplotlib.pyplot as plt
import numpy as np

from isbor import ISBOR

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(-6, 6, 250))[:, None]
truth = 2.0 * np.exp(-((x[:, 0] + 2) ** 2)) - 1.5 * np.exp(-0.3 * (x[:, 0] - 2) ** 2)
y = np.digitize(truth + 0.3 * rng.normal(size=250), [-0.8, 0.0, 0.9])

model = ISBOR(basis="rbf").fit(x, y)
print(f"{model.n_relevance_} functions for {len(x)} rows, centred on rows {model.relevance_.tolist()}")

# %%
# `ISBOR.explain` returns what each function adds to the score of a row. Drawn over the feature, these are
# the functions themselves. Their sum and a constant, the black line, is cut by the thresholds.
#
# How wide should the bumps be? The evidence says that, too. On the right is the objective that the search
# reached with each width it tried: the log evidence less a price for each function, the size prior.
# Narrower bumps could follow the labels more closely, but more of them would be needed, and their evidence
# is lower.

grid = np.linspace(-6, 6, 300)[:, None]
explained = model.explain(grid)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.plot(grid, explained.functions, linewidth=1)
left.plot(grid, explained.score, color="black", linewidth=2, label="score")
for threshold in model.thresholds_:
    left.axhline(threshold, color="black", linestyle="--", linewidth=0.8)
left.plot(
    x[model.relevance_], model.latent(x[model.relevance_]), "o", color="black", label="relevance vectors"
)
left.set(xlabel="feature", ylabel="score", title="A sum of functions")
left.legend(fontsize=8)

trials = sorted(model.width_trials_, key=lambda trial: trial.gamma)
right.plot([trial.gamma for trial in trials], [trial.objective for trial in trials], "o-", markersize=4)
right.axvline(model.gamma_, color="black", linestyle="--", linewidth=0.8)
right.set(
    xscale="log",
    xlabel="gamma: larger is narrower",
    ylabel="objective, nats",
    title="The evidence of each width",
)
plt.show()

# %%
# **Answer.** Few functions suffice. Each one pays for itself: it raises the log evidence by more than the
# size prior takes. Functions of ``basis="mixed"``, and of the default on larger tables, have centres and
# widths of their own, on as many features as each of them needs.
