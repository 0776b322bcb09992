"""The scoreboard: ISBOR beside boosted trees, other ordinal models and simple ones, on all sets.

``isbor reproduce benchmarks.scoreboard:SCOREBOARD`` runs it, ``python -m benchmarks.scoreboard`` prints what
there is so far and draws the diagrams.
"""

from benchmarks.scoreboard.study import SCOREBOARD

__all__ = ["SCOREBOARD"]
