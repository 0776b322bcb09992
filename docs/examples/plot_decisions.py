"""
Which label should you predict?
===============================

A model gives probabilities of ordered labels. Which single label follows from them depends on what an error
costs. Three usual losses have three different best answers: the most probable label, the median, and the
label nearest to the mean.
"""

import matplotlib.pyplot as plt
import numpy as np

grades = ["poor", "fair", "good", "very good", "excellent"]
p = np.array([0.40, 0.14, 0.08, 0.10, 0.28])
ranks = np.arange(5)
distance = np.abs(ranks[:, None] - ranks)  # between the true and the predicted grade

losses = {"wrong or right": distance > 0, "grades off": distance, "grades off, squared": distance**2}
for name, loss in losses.items():
    expected = p @ loss
    print(f"{name:20} {expected.round(2)}  best: {grades[expected.argmin()]}")

# %%
# The expected loss of each possible answer, in one picture. The lowest point of each curve is the label to
# predict.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
left.bar(grades, p, color=plt.get_cmap("viridis")(ranks / 4.5))
left.set(ylabel="probability", title="What the model says")
for (name, loss), marker in zip(losses.items(), "osD", strict=True):
    expected = p @ loss
    expected = expected / expected.min()
    (line,) = right.plot(grades, expected, marker=marker, mfc="white", label=name)
    right.plot(grades[expected.argmin()], 1, marker, color=line.get_color(), markersize=9)
right.set(ylabel="expected loss / that of the best answer", title="What each answer costs")
right.legend(title="loss")
for axes in (left, right):
    axes.tick_params(axis="x", labelsize=8)
plt.show()

# %%
# **Answer.** `predict` returns the median, which minimises the expected number of grades by which you are
# off. ``predict(X, loss="zero_one")`` returns the most probable label, ``loss="quadratic"`` the one nearest
# to the mean, and a matrix ``loss=cost`` whatever costs least (see the example on costs). Where one label
# has more than half of the probability, the median and the most probable label agree.
