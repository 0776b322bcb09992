"""The estimators, one file a model."""

from isbor.estimators.isbor import ISBOR

__all__ = ["ISBOR"]
