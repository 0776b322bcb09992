"""
Intervals: what is "at least 3" worth?
======================================

Four of five patients answered an old questionnaire, which ended at "3 or more"; the others chose among five
grades of pain. Four ways to use the old answers: not at all, as if they all meant a 3, as if they meant a 4,
and as what they are. Six wards, so that one lucky table does not decide.
"""

import matplotlib.pyplot as plt
import numpy as np

from isbor import ISBOR
from isbor.meta import IntervalLabelClassifier
from isbor.metrics import log_loss, mean_absolute_error

GRADES = [1, 2, 3, 4, 5]


def draw(n, seed):
    """Draw patients and their true grades."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=n)
    return X, 1 + np.digitize(score, [-1.3, -0.4, 0.4, 1.3])


def as_pairs(grade, ends_early):
    """Return (2, 2) for a known 2, and (3, None) for "3 or more"."""
    return [(3, None) if early else (g, g) for g, early in zip(grade.tolist(), ends_early, strict=True)]


model = ISBOR(classes=GRADES, effort="fast", basis="mixed")
on_intervals = IntervalLabelClassifier(model, cv=None)
X_test, truth = draw(2000, seed=100)

# %%
losses, errors = {}, {}
for ward in range(6):
    X, grade = draw(200, seed=ward)
    ends_early = (np.arange(200) % 5 > 0) & (grade >= 3)
    ways = {
        "left out": (model, X[~ends_early], grade[~ends_early]),
        "as a 3": (model, X, np.where(ends_early, 3, grade)),
        "as a 4": (model, X, np.where(ends_early, 4, grade)),
        "as intervals": (on_intervals, X, as_pairs(grade, ends_early)),
        "true grades, for comparison": (model, X, grade),
    }
    for way, (estimator, rows, labels) in ways.items():
        p = estimator.fit(rows, labels).predict_proba(X_test)
        median = 1 + np.argmax(np.cumsum(p, axis=1) >= 0.5, axis=1)
        losses.setdefault(way, []).append(log_loss(truth, p, labels=GRADES))
        errors.setdefault(way, []).append(mean_absolute_error(truth, median, labels=GRADES))

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
colours = ["#7f7f7f", "#7f7f7f", "#7f7f7f", "#d95f02", "#1b6ca8"]
for axis, found, name in zip(axes, (losses, errors), ("log loss", "grades off, on average"), strict=True):
    means = [np.mean(values) for values in found.values()]
    bars = axis.barh(list(found), means, color=colours)
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.set(xlabel=f"{name}, lower is better", xlim=(0, 1.15 * max(means)))
axes[0].invert_yaxis()
plt.show()

# %%
# What does the model take an old answer for? The chances of 3, 4 and 5 differ from patient to patient:
shares = on_intervals.fit(X, as_pairs(grade, ends_early)).label_distributions_
for row in np.flatnonzero(ends_early)[:4]:
    chances = " ".join(f"P({g}) = {p:.2f}" for g, p in zip(GRADES[2:], shares[row, 2:], strict=True))
    print(f"true grade {grade[row]}: {chances}")

# %%
# **Answer.** Nearly as much as a grade. Left out, the high grades are rare in what remains; taken for one
# grade, the others are lost. :doc:`/labels-and-decisions` says what is assumed of intervals.
