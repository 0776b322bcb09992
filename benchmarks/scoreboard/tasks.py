"""The sets of the scoreboard: 70 % of the rows train. They are grouped by what development knew of them.

A set that helped to choose a default says less of new data than one that did not, however its splits are
drawn. So a set is moved from `NEVER_LOOKED_AT` to `DEVELOPED_ON` once a result on it led to a change, and
tables never mix the two groups.
"""

from dataclasses import dataclass

from benchmarks.more_sets import MORE_SETS
from benchmarks.studies import OTHER_SETS, SEVENTY
from isbor.experiments import ImportedData, Share, Task

__all__ = ["DEVELOPED_ON", "GROUPS", "LARGE", "NEVER_LOOKED_AT", "TASKS", "Group"]


@dataclass(frozen=True, slots=True)
class Group:
    """Sets of which development knew the same."""

    name: str
    title: str
    tasks: tuple[Task, ...]


DEVELOPED_ON = Group(
    "developed",
    "Developed on, with other splits",
    (
        *SEVENTY.tasks,
        *OTHER_SETS.tasks,
        *(
            Task(name, name, ImportedData("benchmarks.more_sets:load_more", name), Share(0.7))
            for name in MORE_SETS
        ),
    ),
)
NEVER_LOOKED_AT = Group("unseen", "Never looked at", ())

GROUPS = (DEVELOPED_ON, NEVER_LOOKED_AT)
TASKS = tuple(task for group in GROUPS for task in group.tasks)
LARGE = frozenset({"marketing", "bank", "computer", "calhouse", "census", "diamonds"})
"""Sets of more than 5,000 rows, by name."""
