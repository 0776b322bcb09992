"""The experiment behind the scoreboard: all models on all sets."""

from dataclasses import replace

from benchmarks.scoreboard.models import MODELS
from benchmarks.scoreboard.tasks import LARGE, TASKS
from benchmarks.studies import SEVENTY, SVOR
from isbor.experiments import Experiment, Model, Task

__all__ = ["SCOREBOARD"]

_SPLITS = 10
_SPLITS_OF_LARGE = 5
_SMALL_COSTS = {**SVOR.grid, "C": (0.1, 1.0, 10.0, 100.0)}
_SLOW_FOR_SVOR = frozenset(
    {"swd", "breast_cancer", "era", "lev", "anes96", "fair", "randhie", "stock", "car", "winequality_red"}
)

_ROWS_OF_DIAMONDS = {SVOR.name: 16_000, "ebm": 8_000}


def _variant(task: Task, model: Model) -> Model:
    """Return a model as it runs on a set: fewer splits of large sets, and what can be done within hours.

    A fit of SVOR with C = 1000 takes minutes above 500 rows, and hours above 5,000. A fit of EBM to 37,758
    rows of diamonds takes more than a quarter of an hour.
    """
    if task.name in LARGE:
        model = replace(model, splits_at_most=_SPLITS_OF_LARGE)
    if model.name == SVOR.name and task.name in LARGE | _SLOW_FOR_SVOR:
        model = replace(model, grid=_SMALL_COSTS)
    if task.name == "diamonds" and model.name in _ROWS_OF_DIAMONDS:
        model = replace(model, rows_at_most=_ROWS_OF_DIAMONDS[model.name])
    return model


SCOREBOARD = Experiment(
    name="scoreboard",
    title="ISBOR and its rivals",
    models=MODELS,
    tasks=TASKS,
    splits=_SPLITS,
    search=SEVENTY.search,
    limits=SEVENTY.limits,
    variants={(task.name, model.name): _variant(task, model) for task in TASKS for model in MODELS},
)
