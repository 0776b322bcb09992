"""
Rare grades: what if the worst grade has two rows in a hundred?
===============================================================

A model that predicts the median label will hardly ever say the rare grade, because it is hardly ever the best
guess. That is right if errors in all rows cost the same. What do you do if the rare grades are the ones that
matter?
"""

import matplotlib.pyplot as plt
import numpy as np

from isbor import ISBOR
from isbor.meta import PredictionSetClassifier, TunedDecisionClassifier
from isbor.metrics import average_mae, mean_absolute_error

rng = np.random.default_rng(3)
X = rng.normal(size=(4000, 3))
score = X[:, 0] + np.tanh(X[:, 1]) + 0.7 * rng.normal(size=4000)
y = np.digitize(score, [1.2, 2.2, 2.9])
train, test = slice(0, 2000), slice(2000, None)
print("share of each grade:", (np.bincount(y) / 4000).round(3))

# %%
# Two ways to count rare grades for more. ``class_weight="balanced"`` changes the fit: its probabilities are
# those of a world in which all grades are equally frequent. `TunedDecisionClassifier` leaves the
# probabilities as they are and changes the decision only, so that it suits a score of your choice; here the
# error averaged over grades.

plain = ISBOR(effort="fast").fit(X[train], y[train])
balanced = ISBOR(effort="fast", class_weight="balanced").fit(X[train], y[train])
tuned = TunedDecisionClassifier(ISBOR(effort="fast"), scoring="amae").fit(X[train], y[train])

models = {"median": plain, "balanced weights": balanced, "tuned decision": tuned}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True, layout="constrained")
for (name, model), axis in zip(models.items(), axes, strict=True):
    predicted = model.predict(X[test])
    counts = np.histogram2d(y[test], predicted, bins=(4, 4), range=((0, 4), (0, 4)))[0]
    shares = counts / counts.sum(axis=1, keepdims=True)
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(4, 4):
        colour = "white" if shares[i, j] > 0.5 else "black"
        axis.text(j, i, f"{shares[i, j]:.0%}", ha="center", va="center", color=colour)
    every, by_grade = mean_absolute_error(y[test], predicted), average_mae(y[test], predicted)
    axis.set(xlabel="predicted grade", title=name)
    axis.text(1.5, 4.7, f"error {every:.2f}, averaged over grades {by_grade:.2f}", ha="center")
    axis.set(xticks=range(4), yticks=range(4))
axes[0].set_ylabel("true grade")
plt.show()

# %%
# Or do not decide at all where the probabilities do not: sets of grades that contain the true one with a
# chosen probability, within each true grade.

sets = PredictionSetClassifier(ISBOR(effort="fast"), method="cross", conditional="class").fit(
    X[train], y[train]
)
found = sets.predict_set(X[test], coverage=0.9)
for grade in range(4):
    rows = y[test] == grade
    covered, size = found[rows, grade].mean(), found[rows].sum(axis=1).mean()
    print(f"true grade {grade}: in {covered:.0%} of the sets, which have {size:.1f} grades on average")

# %%
# **Answer.** Tune the decision if you need labels, and keep the probabilities honest. Balance the weights
# only if the probabilities themselves are meant for a balanced world. Give sets if a person decides in the
# end.
