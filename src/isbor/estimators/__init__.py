"""The estimators, with one module for each model.

May import `isbor.files`, `isbor.search`, `isbor.kernel`, `isbor.gp`, `isbor.inspection` and the packages
below them.
"""

from isbor.estimators.gpor import GPOR
from isbor.estimators.isbor import ISBOR
from isbor.estimators.isvor import ISVOR
from isbor.estimators.kdlor import KDLOR
from isbor.estimators.loading import load
from isbor.estimators.sbor import SBOR
from isbor.estimators.svor import SVOR

__all__ = ["GPOR", "ISBOR", "ISVOR", "KDLOR", "SBOR", "SVOR", "load"]
