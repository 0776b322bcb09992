"""Importing this module compiles the inner loops of ISBOR and SVOR, on a few rows.

The fork server imports it before the first job, so that no job's time includes the compiler.
"""

from isbor.datasets import make_saddle
from isbor.estimators import SVOR
from isbor.search.compilation import compile_search, ensure_compiled

__all__: list[str] = []

ensure_compiled()
compile_search()
SVOR(probability=False).fit(*make_saddle(20, random_state=0))
