"""
The paper's figure: a saddle from five classes
==============================================

The synthetic data of Li and de Rijke (2018): points in a square, a score in the form of a saddle, cut into
five classes by four thresholds. How many of a thousand rows does the model need to draw it?
"""

import matplotlib.pyplot as plt
import numpy as np

from isbor import ISBOR
from isbor.datasets import make_saddle, saddle_labels
from isbor.plots import LatentDisplay

X, y = make_saddle(1000, random_state=0)
model = ISBOR(basis="rbf").fit(X, y)
print(f"{model.n_relevance_} relevance vectors")

# %%
# Colours are the posterior mean of the score, lines the class boundaries, and large points the relevance
# vectors.

LatentDisplay.from_estimator(model, X, y)
plt.show()

# %%
# How far is that from the best possible? The best a model can do is to know the true score and nothing of
# the noise.

X_test, y_test, score = make_saddle(20_000, random_state=1, return_score=True)
for name, labels in (("true score", saddle_labels(score)), ("model", model.predict(X_test))):
    print(f"{name:11} off by {np.abs(labels - y_test).mean():.4f} classes on average")

# %%
# Where is the model unsure? The standard deviation of the score, and the probability of the predicted
# class.

side = np.linspace(0, 10, 400)
grid = np.stack(np.meshgrid(side, side), axis=-1)
points = grid.reshape(-1, 2)
std = model.latent(points, return_std=True)[1].reshape(400, 400)
surest = model.predict_proba(points).max(axis=1).reshape(400, 400)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, values, title in (
    (left, std, "standard deviation of the score"),
    (right, surest, "largest probability"),
):
    drawn = axis.pcolormesh(side, side, values, shading="auto")
    figure.colorbar(drawn, ax=axis)
    axis.set(title=title, aspect="equal", xlabel="feature 0", ylabel="feature 1")
plt.show()

# %%
# **Answer.** A handful. The probabilities are near one everywhere but along the boundaries, where noise
# alone decides.
