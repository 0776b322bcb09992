"""Importing this module compiles the inner loops of ISBOR and SVOR, on a few rows.

The fork server imports it before the first job, so that no job's time includes the compiler.
"""

from isbor.datasets import make_saddle
from isbor.estimators import SVOR
from isbor.search.adaptive.training import compile_training

__all__: list[str] = []

compile_training()
SVOR(probability=False).fit(*make_saddle(20, random_state=0))
