"""The estimators, one file a model."""

from isbor.estimators.isbor import ISBOR
from isbor.estimators.kdlor import KDLOR
from isbor.estimators.sbor import SBOR
from isbor.estimators.svor import SVOR

__all__ = ["ISBOR", "KDLOR", "SBOR", "SVOR"]
