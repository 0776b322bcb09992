"""
Ratings: who is content?
========================

In 1974, 6,366 readers of a magazine rated their marriages from 1, very poor, to 5, very good. Which of their
answers go with the rating, and how much is left to chance? (R. Fair, "A theory of extramarital affairs",
1978; the table comes with statsmodels.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from statsmodels.datasets import fair

from isbor import ISBOR
from isbor.metrics import mean_absolute_error, ranked_probability_score
from isbor.plots import EffectsDisplay, RelevanceDisplay

survey = fair.load_pandas().data
X, y = survey.drop(columns="rate_marriage"), survey["rate_marriage"].astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

model = ISBOR().fit(X_train, y_train)
print(model.selection_)

# %%
# Two numbers say how good it is, each beside a model that knows nothing but how frequent the ratings are.

frequencies = np.bincount(y_train)[1:] / len(y_train)
constant = np.tile(frequencies, (len(y_test), 1))
median = np.full(len(y_test), 1 + np.searchsorted(frequencies.cumsum(), 0.5))
print("                              model  constant")
print(
    f"mean absolute error           {mean_absolute_error(y_test, model.predict(X_test)):5.3f}"
    f"     {mean_absolute_error(y_test, median):5.3f}"
)
print(
    f"ranked probability score      {ranked_probability_score(y_test, model.predict_proba(X_test)):5.3f}"
    f"     {ranked_probability_score(y_test, constant):5.3f}"
)

# %%
# What matters, and how: the relevance of each answer, and the expected rating along the two that matter
# most, with bands of 90 % for the mean.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
RelevanceDisplay.from_estimator(model, ax=left)
first, second = X.columns[np.argsort(-model.feature_relevance_)[:2]]
EffectsDisplay.from_estimator(model, first, ax=middle)
EffectsDisplay.from_estimator(model, second, target="probabilities", ax=right)
plt.show()

# %%
# **Answer.** The answers tell something, but most of what makes a rating is not in the table: the
# probabilities stay spread over two or three ratings for nearly everyone. That is a result, too. A model
# that reported one rating without its probabilities would hide it.
