"""
Known costs: what if one kind of error is worse?
================================================

To call a patient's disease too mild is here three times as bad as to call it too severe, for each grade by
which the call is off. How do the predicted grades change?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from isbor import ISBOR

X, progression = load_diabetes(return_X_y=True, scaled=False)
grades = ["mild", "moderate", "serious", "severe"]
y = np.array(grades)[np.digitize(progression, [90, 140, 210])]
model = ISBOR(classes=grades).fit(X[:-100], y[:-100])

true, predicted = np.indices((4, 4))
cost = np.where(predicted < true, 3.0 * (true - predicted), 1.0 * (predicted - true))
print(cost)

# %%
# The cost matrix goes to `predict`. Nothing is fitted anew: the probabilities are the same, only the
# decision changes.

ranks = np.searchsorted([90, 140, 210], progression[-100:], side="right")
score = model.latent(X[-100:])
answers = {"median": model.predict(X[-100:]), "least expected cost": model.predict(X[-100:], loss=cost)}

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
for (name, labels), axis in zip(answers.items(), axes, strict=True):
    called = np.array([grades.index(label) for label in labels])
    off = called - ranks
    for sign, colour, meaning in (
        (-1, "tab:red", "too mild"),
        (0, "tab:grey", "right"),
        (1, "tab:blue", "too severe"),
    ):
        rows = np.sign(off) == sign
        label = f"{meaning}: {rows.sum()}"
        axis.scatter(score[rows], called[rows] + 0.06 * off[rows], s=18, color=colour, label=label)
    axis.set(title=f"{name}: cost {cost[ranks, called].mean():.2f} a patient", xlabel="score")
    axis.set_yticks(range(4), grades)
    axis.legend()
plt.show()

# %%
# **Answer.** Patients near a threshold are now called the more severe of two grades. About as many are
# called wrongly as before, but few of them too mild, and the mean cost falls.
