"""Sparse Bayesian ordinal regression, with the API of scikit-learn."""

from isbor import datasets, metrics
from isbor.estimators import ISBOR

__all__ = ["ISBOR", "datasets", "metrics"]

__version__ = "0.1.0.dev0"
