"""
A survey with categories and missing answers
============================================

Wines rated by customers: the region is a category, the sugar a number, and the price is missing for many,
most of all for the dear ones. Do you have to encode and impute before you fit? The ratings are simulated, so
the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isbor import ISBOR
from isbor.metrics import ranked_probability_score
from isbor.plots import EffectsDisplay

rng = np.random.default_rng(2)
n = 1500
region = rng.choice(["coast", "hills", "valley"], n, p=[0.3, 0.5, 0.2])
price = rng.gamma(4, 4, n)
sugar = rng.gamma(2, 3, n)
taste = 0.1 * price - 0.02 * (sugar - 6) ** 2 + 0.8 * (region == "hills") + rng.normal(size=n)
stars = np.digitize(taste, [0.2, 1.0, 1.9, 2.8]) + 1

hidden = rng.random(n) < np.where(price > 20, 0.6, 0.1)  # the dear ones more often
wines = pd.DataFrame({"region": region, "price": np.where(hidden, np.nan, price), "sugar": sugar})
print(wines.head(4).round(1).to_string(), f"\n\nprices missing: {hidden.mean():.0%}")

# %%
# No. A data frame goes in as it is: a column of text becomes categories, a missing price is replaced by the
# mean and marked in a column of its own, which the model may use.

model = ISBOR().fit(wines[:1000], stars[:1000])
print(*model.column_names_, sep=", ")

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for feature, axis in zip(wines.columns, axes, strict=True):
    EffectsDisplay.from_estimator(model, feature, ax=axis)
plt.show()

# %%
# The model has noticed that a missing price is a sign of a dear wine: its effect is above that of the mean
# price. What is it worth to keep these rows?

test, labels = wines[1000:], stars[1000:]
known = ~hidden[:1000]
only_known = ISBOR().fit(wines[:1000][known], stars[:1000][known])
imputed = ISBOR().fit(wines[:1000].fillna({"price": price[~hidden].mean()}), stars[:1000])
filled = test.fillna({"price": price[~hidden].mean()})
for name, p in (
    ("cells left missing", model.predict_proba(test)),
    ("mean imputed, no mark", imputed.predict_proba(filled)),
    ("rows with missing cells dropped", only_known.predict_proba(filled)),
):
    print(f"{name:32} ranked probability score {ranked_probability_score(labels, p):.4f}")

# %%
# **Answer.** Leave missing cells missing and categories as they are. To drop rows costs most, and in
# production they will come. Here a constant in the place of missing prices does as well, since the model
# recognises the many rows that have exactly this price. But that is one more step, which you would have to
# repeat in production.
