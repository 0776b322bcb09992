"""Sparse Bayesian ordinal regression, with the API of scikit-learn."""

from isbor import datasets, metrics
from isbor._core.trace import Step, StopReason
from isbor.data.label_encoder import OrderedLabelEncoder
from isbor.estimators import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR

__all__ = [
    "GPOR",
    "ISBOR",
    "ISVOR",
    "KDLOR",
    "SBOR",
    "SVOR",
    "OrderedLabelEncoder",
    "Step",
    "StopReason",
    "datasets",
    "metrics",
]

__version__ = "0.1.0.dev0"
