"""Around any classifier of ordered classes with ``predict_proba``: sets, label errors, decisions, intervals.

Whatever the classifier, isbor's or another's, labels are ordered as everywhere in isbor: by ``classes=`` of
the function or meta-estimator, else by that of the classifier inside, else by the labels themselves if they
are numbers or an ordered categorical.

May import `isbor.estimators`, `isbor.metrics` and the packages below them.
"""

from isbor.meta.interval_labels import IntervalLabelClassifier
from isbor.meta.label_errors import SuspiciousLabels, suspicious_labels
from isbor.meta.prediction_sets import PredictionSetClassifier
from isbor.meta.tuned_decision import TunedDecisionClassifier

__all__ = [
    "IntervalLabelClassifier",
    "PredictionSetClassifier",
    "SuspiciousLabels",
    "TunedDecisionClassifier",
    "suspicious_labels",
]
