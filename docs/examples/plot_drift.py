"""
Drift: when should a model forget?
==================================

Batches of rows arrive, and half-way through, what makes a good grade changes. One model is fitted once and
left alone, one learns from every batch and never forgets, and one forgets with a half-life of 600 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from isbor import ISBOR
from isbor.metrics import ranked_probability_score


def batch(number, size=150):
    """Draw a batch; from number 12 on, the second feature counts the other way."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(size, 3))
    sign = 1 if number < 12 else -1
    score = X[:, 0] + sign * np.tanh(2 * X[:, 1]) + 0.4 * rng.normal(size=size)
    return X, np.digitize(score, [-1, 0, 1])


left_alone = ISBOR(effort="fast").fit(*batch(0, size=600))
streams = {
    "learns, never forgets": ISBOR(effort="fast"),
    "learns, half-life of 600 rows": ISBOR(effort="fast", half_life=600),
}
losses = {"fitted once": [], **{name: [] for name in streams}}
for number in range(28):
    X, y = batch(number)
    if number > 0:  # each batch is predicted before it is learned
        for name, model in {"fitted once": left_alone, **streams}.items():
            p = model.predict_proba(X)
            losses[name].append(ranked_probability_score(y, p, labels=[0, 1, 2, 3]))
    for model in streams.values():
        model.partial_fit(X, y, classes=[0, 1, 2, 3] if number == 0 else None)

# %%
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
for name, values in losses.items():
    axis.plot(range(1, 28), values, marker=".", label=name)
axis.axvline(11.5, color="black", linestyle="--", linewidth=0.8)
axis.annotate("the change", (11.6, 0.01), fontsize=9)
axis.set(xlabel="batch", ylabel="ranked probability score, lower is better", ylim=(0, None))
axis.legend()
plt.show()

# %%
# How would you notice, without a model that learns? The score of each batch, as above, is the surest sign,
# but it needs labels. See :doc:`/production` for what can be watched without them.
#
# **Answer.** As long as nothing changes, forgetting costs little. After a change, the model that forgets
# recovers within a few half-lives, and the one that keeps everything has to outvote its past.
