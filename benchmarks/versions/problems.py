"""The problems on which versions are compared, as data, and their rows for each split."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.other_sets import SETS
from benchmarks.problems import draw_grades
from benchmarks.studies import OTHER_SETS, SADDLE, SEVENTY
from isbor._core.types import IntArray
from isbor.data.frames import take_rows
from isbor.experiments import Task

__all__ = ["PROBLEMS", "Grades", "Problem", "Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to train and rows to test; labels count from 0."""

    X: Any
    y: IntArray
    X_test: Any
    y_test: IntArray
    n_classes: int


@dataclass(frozen=True, slots=True)
class Grades:
    """Grades that are drawn anew for each split: no two splits share rows."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A table and the parameters of ISBOR."""

    group: str
    name: str
    table: Grades | Task
    parameters: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False  # a fit took a minute or so in the default base

    def check(self) -> None:
        """Raise an OSError that says what to do if the table cannot be had."""
        if isinstance(self.table, Task):
            self.table.load()

    def rows(self, split: int) -> Rows:
        """Return the rows of a split."""
        if isinstance(self.table, Grades):
            train = draw_grades(self.table.rows, self.table.columns, 2 * split)
            return Rows(*train, *draw_grades(_TEST_GRADES, self.table.columns, 2 * split + 1), 5)
        data = self.table.load()
        train, test = self.table.scheme.split(data.y, split, SEVENTY.seed)
        parts = ((take_rows(data.X, rows), data.y[rows]) for rows in (train, test))
        return Rows(*next(parts), *next(parts), len(data.classes))


_TEST_GRADES = 5000
_SIZES = {
    f"grades-{n}x{d}": Grades(n, d)
    for n, d in (
        *((n, 10) for n in (100, 500, 1000, 2500)),
        *((2500, 100), (10_000, 10), (100_000, 10), (1_000_000, 10)),
    )
}
_SEVEN = {task.name: task for task in SEVENTY.tasks}
_RBF = {"grades-500x10": _SIZES["grades-500x10"], "saddle": SADDLE.tasks[0], "census": _SEVEN["census"]}
_FEW = {name: _SEVEN[name] for name in ("calhouse", "census")} | {
    "grades-100000x10": _SIZES["grades-100000x10"],
    "saddle": SADDLE.tasks[0],
}
_FEW_VECTORS = 50
_SLOW = ("grades-100000x10", "grades-1000000x10", "calhouse", "census")

PROBLEMS = (
    *(Problem("grades", name, grades, slow=name in _SLOW) for name, grades in _SIZES.items()),
    *(Problem("seven", name, task, slow=name in _SLOW) for name, task in _SEVEN.items()),
    *(Problem("others", name, task) for name, task in zip(SETS, OTHER_SETS.tasks, strict=True)),
    *(Problem("rbf", f"{name}-rbf", table, {"basis": "rbf"}) for name, table in _RBF.items()),
    *(
        Problem("few", f"{name}-few", table, {"basis": "rbf", "max_vectors": _FEW_VECTORS})
        for name, table in _FEW.items()
    ),
)
