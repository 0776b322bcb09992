"""Code that is compiled when it is first used, compiled now: importing this module makes a small fit.

The server of processes does that before the first job, so that no job's time has a compiler's in it.
"""

from isbor.datasets import make_saddle
from isbor.estimators import SVOR

__all__: list[str] = []

SVOR(probability=False).fit(*make_saddle(20, random_state=0))
