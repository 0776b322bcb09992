"""
Medical severity: how sure is the model about a patient?
========================================================

442 patients with diabetes, ten measurements, and how far the disease progressed within a year, in four
grades. For a patient, the model gives the probability of each grade, and bands that say how far these
probabilities may be from the true ones. When are the bands wide?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from isbor import ISBOR

X, progression = load_diabetes(return_X_y=True, scaled=False, as_frame=True)
grades = ["mild", "moderate", "serious", "severe"]
y = np.array(grades)[np.digitize(progression, [90, 140, 210])]

model = ISBOR(classes=grades).fit(X[:-100], y[:-100])

# %%
# Eight of the held-out patients, from the lowest to the highest score. Bars are probabilities, and whiskers
# are bands of 90 %. A circle marks the grade that the patient turned out to have.

held_out = X[-100:]
by_score = np.argsort(model.latent(held_out))
chosen = by_score[np.linspace(0, 99, 8).astype(int)]
p = model.predict_proba(held_out.iloc[chosen])
low, high = model.predict_proba_interval(held_out.iloc[chosen], 0.9)

figure, axes = plt.subplots(2, 4, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0.1, 0.85, 4))
for i, (patient, axis) in enumerate(zip(chosen, axes.flat, strict=True)):
    axis.bar(grades, p[i], color=colours, yerr=[p[i] - low[i], high[i] - p[i]], capsize=3)
    axis.plot(y[-100:][patient], 0.95, "o", color="black")
    axis.set(title=f"patient {held_out.index[patient]}", ylim=(0, 1))
    axis.tick_params(axis="x", rotation=30)
plt.show()

# %%
# How wide the bands are depends on how many rows like this one there were. A patient with measurements
# outside the range of all others gets wider bands, and `ISBOR.out_of_range` says so:

unusual = held_out.iloc[[chosen[4]]].copy()
unusual[["bmi", "s5"]] = [60.0, 7.0]
for name, row in (("as measured", held_out.iloc[[chosen[4]]]), ("far outside", unusual)):
    low, high = model.predict_proba_interval(row, 0.9)
    print(f"{name}: out of range by {model.out_of_range(row)[0]:.2f}, widest band {np.max(high - low):.2f}")

# %%
# **Answer.** The probabilities include what the model does not know, and the bands say how much that is.
# With 342 patients they are not narrow. Do not report a probability of .43 as if it were known to two
# digits.
