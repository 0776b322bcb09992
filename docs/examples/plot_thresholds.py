"""
What does a threshold do?
=========================

An ordinal model has one score for each row and a few thresholds that are the same for all rows. A label says
between which two thresholds the score lies, give or take some noise. Here the truth is known: one feature, a
score that goes up and down with it, and three grades.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from isbor import ISBOR

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 400))
score = 1.5 * np.sin(x)
thresholds = [-0.7, 0.9]
grades = ["poor", "fair", "good"]
response = score + 0.5 * rng.normal(size=400)
y = np.array(grades)[np.digitize(response, thresholds)]

model = ISBOR(basis="rbf", classes=grades).fit(x[:, None], y)

# %%
# On the left, the true score and the thresholds that cut it: a row is labelled by the stripe in which its
# score plus noise falls. On the right, what the model learned from the labels alone: the height of each
# colour is the probability of that grade.

grid = np.linspace(0, 10, 300)
colours = plt.get_cmap("viridis")([0.15, 0.5, 0.85])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.plot(grid, 1.5 * np.sin(grid), color="black", label="true score")
for grade, colour in zip(grades, colours, strict=True):
    left.plot(x[y == grade], response[y == grade], ".", color=colour, markersize=4, label=grade)
for threshold in thresholds:
    left.axhline(threshold, color="black", linestyle="--", linewidth=0.8)
left.set(xlabel="feature", ylabel="score, and score + noise", title="Thresholds cut a score")
left.set_ylim(-3.4, None)
left.legend(loc="lower center", ncols=4, fontsize=8, columnspacing=1)

right.stackplot(grid, model.predict_proba(grid[:, None]).T, colors=colours)
right.set(xlabel="feature", ylabel="probability", xlim=(0, 10), ylim=(0, 1), title="What the model says")
plt.show()

# %%
# The score of the model has a unit of its own, so compare probabilities rather than scores with the truth:

true_cumulative = norm.cdf((np.array(thresholds) - 1.5 * np.sin(grid)[:, None]) / 0.5)
predicted_cumulative = model.predict_proba(grid[:, None]).cumsum(axis=1)[:, :2]
print(f"P(y ≤ k) is off by {np.abs(predicted_cumulative - true_cumulative).mean():.3f} on average.")

# %%
# **Answer.** Thresholds turn one number, the score, into probabilities of all grades. Where the score is
# far from all thresholds, the label is nearly certain; at a threshold, two neighbours share the
# probability.
