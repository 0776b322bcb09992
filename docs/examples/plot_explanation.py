"""
Why this grade, and what would change it?
=========================================

A patient is predicted to be "moderate". Which measurements brought the score there, and what is the smallest
change with which the model would say "mild"?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from isbor import ISBOR
from isbor.plots import ExplanationDisplay

X, progression = load_diabetes(return_X_y=True, scaled=False, as_frame=True)
grades = ["mild", "moderate", "serious", "severe"]
y = np.array(grades)[np.digitize(progression, [90, 140, 210])]
model = ISBOR(basis="rbf", classes=grades).fit(X[:-100], y[:-100])
patient = X.iloc[[413]]

# %%
# The score of the patient is that of an average patient plus one contribution for each measurement. These
# are exact Shapley values: they add up to the score.

ExplanationDisplay.from_estimator(model, patient)
plt.show()

# %%
# The nearest row of a lower grade, if only three of the measurements may change:

change = model.changes(patient, to=-1, allowed=["bmi", "bp", "s5"])[0]
print(change)

# %%
# And how the probabilities change along the measurement that matters most for this patient:

explanation = model.explain(patient)
most = explanation.feature_names[np.abs(explanation.contributions[0]).argmax()]
varied = patient.loc[patient.index.repeat(60)].reset_index(drop=True)
varied[most] = np.linspace(X[most].quantile(0.02), X[most].quantile(0.98), 60)

figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0.1, 0.9, 4))
axis.stackplot(varied[most], model.predict_proba(varied).T, colors=colours, labels=grades)
axis.axvline(patient[most].item(), color="white", linewidth=2)
axis.set(xlabel=f"{most} (white line: this patient)", ylabel="probability", ylim=(0, 1))
axis.margins(x=0)
axis.legend(loc="upper left", fontsize=8)
plt.show()

# %%
# **Answer.** Contributions say what moved the score and by how much; the change says what the model would
# need. Both describe the model. Whether a patient would fare better with another value is a question about
# causes.
