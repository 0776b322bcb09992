"""Importing this module compiles SVOR by a small fit.

The fork server imports it before the first job, so that no job's time includes the compiler.
"""

from isbor.datasets import make_saddle
from isbor.estimators import SVOR

__all__: list[str] = []

SVOR(probability=False).fit(*make_saddle(20, random_state=0))
