"""An experiment: models × tasks × splits, how grids are searched, and the limits of a job.

An experiment is frozen and expands to jobs, the units of work. The key of a job ends in a digest of
everything that its result depends on. So a changed model or data set gives new jobs, while other limits,
fewer splits or fewer models leave the remaining jobs as they are.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from isbor.data.encoding import learn_table
from isbor.experiments.description.models import Model, as_plain, make_estimator
from isbor.experiments.description.tasks import CrossValidation, Holdout, Scheme, Source, Task
from isbor.metrics import get_scorer

__all__ = ["Job", "Experiment", "Limits", "Search"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job.

    See Also
    --------
    Experiment : Has limits, the same for all of its jobs.

    Examples
    --------
    >>> from isbor.experiments import Limits
    >>> Limits(seconds=60).memory
    8.0
    """

    seconds: float = 3600.0  # of the whole process, search included
    memory: float = 8.0  # gigabytes

    def __post_init__(self) -> None:
        for what, value, unit in (("time", self.seconds, "s"), ("memory", self.memory, "GB")):
            if not value > 0:
                raise ValueError(f"The {what} limit is {value} {unit}; it must be positive.")


@dataclass(frozen=True, slots=True)
class Search:
    """Grid search by cross-validation on the training rows.

    See Also
    --------
    Experiment : Says how grids are searched.
    Model : Has the grid.

    Examples
    --------
    >>> from isbor.experiments import Search
    >>> Search(folds=3).scoring
    'mae'
    """

    folds: int = 5
    scoring: str = "mae"
    rows_at_most: int | None = None  # search on the first rows only; None: all rows
    give_up: float = 5.0  # drop points this many standard errors behind the best; inf: never

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ValueError(f"The search has {self.folds} fold(s); at least 2 are needed.")
        if self.rows_at_most is not None and self.rows_at_most < self.folds:
            raise ValueError(
                f"The search has {self.folds} folds and at most {self.rows_at_most} row(s); at least as many "
                "rows as folds are needed."
            )
        if not self.give_up > 0:
            raise ValueError(
                f"give_up is {self.give_up}; a positive number of standard errors is needed, or inf to try "
                "all points of a grid on all folds."
            )


@dataclass(frozen=True, slots=True)
class Job:
    """One model on one split of one task.

    See Also
    --------
    Experiment.jobs : All jobs of an experiment.
    Record : What came of a job.

    Examples
    --------
    >>> from isbor.experiments import CATALOGUE, Experiment, Holdout, Saddle, Task
    >>> task = Task("saddle", "Saddle", Saddle(rows=300), Holdout(train=200))
    >>> experiment = Experiment("mine", "Mine", (CATALOGUE["linear"],), (task,), splits=2)
    >>> [(job.model.name, job.task.name, job.split) for job in experiment.jobs()]
    [('linear', 'saddle', 0), ('linear', 'saddle', 1)]
    """

    model: Model
    task: Task
    split: int
    seed: int
    search: Search

    @property
    def _searched(self) -> list[object]:
        return [_facts(self.search), self.model.searched_by, dict(self.model.search_parameters)]

    @property
    def key(self) -> str:
        """Task, model and split, and a digest of everything that the result depends on."""
        facts = {
            "estimator": [
                self.model.estimator,
                dict(self.model.parameters),
                self.model.inputs,
                *([self.model.digest] if self.model.digest else []),
                *([self.model.rows_at_most] if self.model.rows_at_most else []),
            ],
            "grid": {name: list(values) for name, values in self.model.grid.items()},
            "search": self._searched if self.model.grid else [],
            "source": _facts(self.task.source),
            "scheme": _facts(self.task.scheme),
            "split": [self.split, self.seed],
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=as_plain).encode()).hexdigest()[:16]
        return f"{self.task.name}/{self.model.name}/{self.split}/{digest}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """Models to compare on tasks.

    See Also
    --------
    load_study : The studies of the paper, and experiments from files.
    run : Runs its jobs.
    write_report : Tables, figures and a page of the results.

    Examples
    --------
    >>> from isbor.experiments import CATALOGUE, Experiment, Holdout, Saddle, Task
    >>> saddle = Task("saddle", "Saddle", Saddle(rows=2000), Holdout(train=1000))
    >>> experiment = Experiment("mine", "My comparison", (CATALOGUE["isbor"],), (saddle,), splits=3)
    >>> len(experiment.jobs())
    3
    """

    name: str
    title: str
    models: tuple[Model, ...]
    tasks: tuple[Task, ...]
    splits: int
    seed: int = 0
    search: Search = field(default_factory=Search)
    limits: Limits = field(default_factory=Limits)
    about: str = ""  # a paragraph for the report
    variants: Mapping[tuple[str, str], Model] = field(default_factory=dict)  # see `model_on`

    def __post_init__(self) -> None:
        for what, items in (("model", self.models), ("data set", self.tasks)):
            names = [item.name for item in items]
            if not names:
                raise ValueError(f"The experiment {self.name!r} has no {what}; name at least one.")
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(
                    f"The {what} {twice[0]!r} is listed twice; list it once, or give the second another name."
                )
            titles = [item.title for item in items]
            alike = sorted({title for title in titles if titles.count(title) > 1})
            if alike:
                raise ValueError(
                    f"Two {what}s have the title {alike[0]!r}, but reports identify them by title; give "
                    "one another title."
                )
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise ValueError(
                f"The experiment's name is {self.name!r}, and its directory has the same name; use letters, "
                "digits, dots, hyphens and underscores only."
            )
        if self.splits < 1:
            raise ValueError(f"splits is {self.splits}; at least 1 is needed.")
        if not 0 <= self.seed < 2**32 - 10_000:
            raise ValueError(f"The seed is {self.seed}; an integer from 0 to 4,294,957,295 is needed.")

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs: the first split of all tasks and models, then the second, and so on."""
        return tuple(
            Job(model, task, split, self.seed, self.search)
            for split in range(self.splits)
            for task in self.tasks
            for model in (self.model_on(task, model) for model in self.models)
            if model.splits_at_most is None or split < model.splits_at_most
        )

    def model_on(self, task: Task, model: Model) -> Model:
        """Return the model, or its variant for this task, with another grid for instance."""
        return self.variants.get((task.name, model.name), model)

    def only(self, models: Sequence[str] | None = None, tasks: Sequence[str] | None = None) -> "Experiment":
        """Return the experiment with only these models and data sets."""
        return replace(
            self,
            models=_chosen("model", models, self.models),
            tasks=_chosen("data set", tasks, self.tasks),
        )

    def check(self) -> None:
        """Raise an error if an estimator cannot be made or data cannot be read, before any job starts."""
        for model in (self.model_on(task, model) for task in self.tasks for model in self.models):
            parameters = {**model.parameters, **{name: values[0] for name, values in model.grid.items()}}
            make_estimator(model.estimator, parameters)
            if model.grid:
                searched = {**parameters, **model.search_parameters}
                estimator = make_estimator(model.searched_by or model.estimator, searched)
                if not hasattr(estimator, get_scorer(self.search.scoring).response):
                    raise ValueError(
                        f"scoring={self.search.scoring!r} needs probabilities, which {model.title} does not "
                        "have during the search. Choose a score of labels, such as 'mae', or change the "
                        "model's search_parameters."
                    )
        for task in self.tasks:
            data = task.load()
            try:
                learn_table("ISBOR", data.X)
            except ValueError as error:
                raise ValueError(f"{task.title} cannot be used: {error}") from error

    def how_tuned(self) -> str:
        """Return which models are tuned, and how."""
        search = self.search
        rows = "training rows" if search.rows_at_most is None else f"{search.rows_at_most:,} training rows"
        searched = [model.title for model in self.models if model.grid]
        chosen = [model.title for model in self.models if model.tuning and not model.grid]
        others = [model.title for model in self.models if not model.tuning and not model.grid]
        sentences = {
            f"Tuned by {search.folds}-fold cross-validation on {rows}": searched,
            "Tuned within the fit": chosen,
            "Not tuned": others,
        }
        return " ".join(f"{how}: {', '.join(titles)}." for how, titles in sentences.items() if titles)

    @property
    def distinct_models(self) -> tuple[Model, ...]:
        """The models without those that have the same solution as another one."""
        by_name = {model.name: model for model in self.models}

        def repeats(model: Model) -> bool:
            other = by_name.get(model.same_as)
            return other is not None and (other.parameters, other.grid) == (model.parameters, model.grid)

        return tuple(model for model in self.models if not repeats(model))

    @property
    def grows(self) -> bool:
        """Whether the tasks are one data set with growing numbers of training rows."""
        return (
            len(self.tasks) > 1
            and len({task.source for task in self.tasks}) == 1
            and all(isinstance(task.scheme, Holdout) for task in self.tasks)
        )

    @property
    def cross_validated(self) -> bool:
        """Whether a task is split by cross-validation."""
        return any(isinstance(task.scheme, CrossValidation) for task in self.tasks)


def _facts(part: Search | Source | Scheme) -> dict[str, object]:
    """Return the type and values of a part of a description, without the path of a file."""
    facts = {name: value for name, value in asdict(part).items() if value is not None and name != "path"}
    return {"kind": type(part).__name__, **facts}


_Named = TypeVar("_Named", Model, Task)


def _chosen(what: str, names: Sequence[str] | None, items: Iterable[_Named]) -> tuple[_Named, ...]:
    by_name = {item.name: item for item in items}
    if names is None:
        return tuple(by_name.values())
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ValueError(f"There is no {what} {unknown[0]!r} here; choose from {', '.join(by_name)}.")
    return tuple(item for name, item in by_name.items() if name in names)
