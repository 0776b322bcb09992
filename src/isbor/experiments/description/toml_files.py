"""Experiments described in TOML files.

.. code-block:: toml

    name = "mine"
    title = "My comparison"
    models = ["isbor", "svor", "logistic"]   # from the catalogue, or described below
    splits = 10

    [search]                                 # how grids are searched
    folds = 5

    [limits]                                 # of one job
    seconds = 600
    memory = 4                               # gigabytes

    [[tasks]]
    data = "swd"                             # one of the seven sets, or "saddle"
    train = 750                              # training rows, a list of them, or a share such as 0.7

    [[tasks]]
    file = "grades.csv"                      # a table of your own, beside this file
    target = "grade"
    order = ["low", "mid", "high"]
    folds = 5                                # cross-validation instead of random splits

    [model.svor]                             # changes to the catalogue, or a new model
    parameters = { constraints = "explicit" }
    grid = { C = [1.0, 10.0] }

    [model.logistic]
    estimator = "mord:LogisticAT"
    inputs = "numbers"

    [quick]                                  # what `--quick` changes
    splits = 3
    train_at_most = 1000
"""

import difflib
import importlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from isbor.experiments.description.experiment import Experiment, Limits, Search
from isbor.experiments.description.models import CATALOGUE, Model, catalogue_model
from isbor.experiments.description.tasks import (
    BenchmarkData,
    CrossValidation,
    Holdout,
    Saddle,
    Share,
    TableFile,
    Task,
    file_digest,
    label_text,
)

__all__ = ["STUDIES", "load_study", "read_description"]

STUDIES = ("synthetic", "benchmarks")
"""The studies of the paper."""

T = TypeVar("T")
_REQUIRED: Any = object()
_NUMBER = (int, float)


def load_study(name: str, *, quick: bool = False) -> Experiment:
    """Return a study of the paper, or the experiment that a file describes.

    Parameters
    ----------
    name : str
        "synthetic", "benchmarks", the path of a TOML file, or "package.module:NAME" of an Experiment.
    quick : bool
        A smaller version that takes minutes.

    Examples
    --------
    >>> study = load_study("benchmarks")
    >>> [task.name for task in study.tasks]
    ['bs', 'swd', 'marketing', 'bank', 'computer', 'calhouse', 'census']
    >>> len(study.jobs())  # 7 sets, 9 models, 20 splits
    1260
    """
    if name in STUDIES:
        text = (
            resources.files("isbor.experiments.description")
            .joinpath(f"studies/{name}.toml")
            .read_text("utf-8")
        )
        return read_description(text, f"{name}.toml", quick=quick)
    path = Path(name)
    if path.suffix.lower() != ".toml":
        if ":" in name:
            return _imported(name, quick=quick)
        close = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"There is no study {name!r}.{hint} The studies are {' and '.join(STUDIES)}; your own "
            "experiment is a .toml file, or an Experiment in a module: package.module:NAME."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {name!r}.")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error
    return read_description(text, path.name, directory=path.parent, quick=quick)


def _imported(name: str, *, quick: bool) -> Experiment:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"The experiment {name!r} cannot be imported ({error}). Check its name.") from error
    if not isinstance(found, Experiment):
        raise ValueError(f"{name!r} is a {type(found).__name__}; an Experiment is needed.")
    if quick:
        raise ValueError(f"{name!r} is an Experiment in a module and has no quick version.")
    return found


def read_description(text: str, where: str, *, directory: Path = Path(), quick: bool = False) -> Experiment:
    """Return the experiment that a TOML text describes; `where` names the text in errors."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where} is not valid TOML: {error}.") from error
    top = _Section(content, where)
    changes = _Section(top.take("quick", dict, {}), f"{where}, [quick]")
    if not quick:
        changes = _Section({}, changes.where)
    elif not changes.content:
        raise ValueError(f"{where} has no [quick] section; run it without --quick.")
    models = _models(top, directory)
    name = top.take("name", str)
    experiment = Experiment(
        name=name,
        title=top.take("title", str, name),
        models=models,
        tasks=tuple(_tasks(top, changes, directory)),
        splits=changes.take("splits", int, top.take("splits", int, 20)),
        seed=top.take("seed", int, 0),
        search=_search({**top.take("search", dict, {}), **changes.take("search", dict, {})}, where),
        limits=_limits({**top.take("limits", dict, {}), **changes.take("limits", dict, {})}, where),
        about=top.take("about", str, "").strip(),
    )
    top.finish()
    changes.finish()
    return experiment


class _Section:
    """A table of a TOML file. Entries are taken one by one; an entry left over is an error."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self.content = content
        self.where = where
        self._known: list[str] = []

    def take(self, key: str, kind: type[T] | tuple[type, ...], default: Any = _REQUIRED) -> Any:
        """Return an entry of the right type."""
        self._known.append(key)
        if key not in self.content:
            if default is _REQUIRED:
                raise ValueError(f"{self.where}: {key!r} is missing.")
            return default
        value = self.content[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(_IN_WORDS[kind] for kind in kinds)
            raise ValueError(f"{self.where}: {key!r} is {value!r}; {wanted} is needed.")
        return value

    def finish(self) -> None:
        """Raise a ValueError if an entry was not taken."""
        for key in self.content:
            if key not in self._known:
                close = difflib.get_close_matches(key, self._known, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"{self.where}: unknown entry {key!r}.{hint} Entries are {', '.join(self._known)}."
                )


_IN_WORDS: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


def _models(top: _Section, directory: Path) -> tuple[Model, ...]:
    described = top.take("model", dict, {})
    names = top.take("models", list)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"{top.where}: 'models' holds {name!r}; strings are needed.")
    unused = [name for name in described if name not in names]
    if unused:
        raise ValueError(f"{top.where}: [model.{unused[0]}] is not listed in 'models'; add it there.")
    return tuple(_model(name, described.get(name), top.where, directory) for name in names)


def _model(name: str, content: Any, where: str, directory: Path) -> Model:
    if content is None:
        return catalogue_model(name)
    if not isinstance(content, dict):
        raise ValueError(f"{where}: 'model.{name}' is {content!r}; a table is needed.")
    section = _Section(content, f"{where}, [model.{name}]")
    base = CATALOGUE.get(name)
    if base is not None and content.get("estimator", base.estimator) != base.estimator:
        base = None  # the catalogue's parameters are for another estimator
    grid = section.take("grid", dict, None)
    for parameter, values in (grid or {}).items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{section.where}: the grid of {parameter!r} is {values!r}; a list is needed.")
    inputs = section.take("inputs", str, base.inputs if base else "table")
    if inputs not in ("table", "numbers"):
        raise ValueError(f"{section.where}: 'inputs' is {inputs!r}; 'table' or 'numbers' is needed.")
    estimator = section.take("estimator", str, base.estimator if base else _REQUIRED)
    module = directory / f"{estimator.partition(':')[0].partition('.')[0]}.py"
    model = Model(
        name,
        section.take("title", str, base.title if base else name),
        estimator,
        {**(base.parameters if base else {}), **section.take("parameters", dict, {})},
        (base.grid if base else {}) if grid is None else {key: tuple(grid[key]) for key in grid},
        section.take("search_parameters", dict, base.search_parameters if base else {}),
        section.take("searched_by", str, base.searched_by if base else ""),
        inputs,
        file_digest(module) if module.is_file() else "",
        tuning=base.tuning if base and "parameters" not in content else "",
        same_as=base.same_as if base else "",
    )
    section.finish()
    return model


def _tasks(top: _Section, changes: _Section, directory: Path) -> Iterator[Task]:
    train_at_most = changes.take("train_at_most", int, None)
    test_at_most = changes.take("test_at_most", int, None)
    sizes = changes.take("train", list, None)
    if sizes is not None:
        _check_sizes(sizes, changes.where)
    for number, content in enumerate(top.take("tasks", list), start=1):
        where = f"{top.where}, [[tasks]] number {number}"
        if not isinstance(content, dict):
            raise ValueError(f"{where} is {content!r}; a table is needed.")
        section = _Section(content, where)
        yield from _task(section, directory, sizes, train_at_most, test_at_most)
        section.finish()


def _task(
    section: _Section,
    directory: Path,
    sizes: Sequence[int] | None,
    train_at_most: int | None,
    test_at_most: int | None,
) -> list[Task]:
    """Return the tasks of one entry: one for each number of training rows."""
    if "file" in section.content:
        path = directory / section.take("file", str)
        order = [label_text(label) for label in section.take("order", list, [])]
        if len(order) == 1 or len(set(order)) < len(order):
            raise ValueError(
                f"{section.where}: 'order' names {', '.join(order)}; at least 2 different labels, lowest "
                "first, are needed."
            )
        drop = section.take("drop", list, [])
        source: TableFile | Saddle | BenchmarkData = TableFile.of(
            path, section.take("target", str), order, [str(name) for name in drop]
        )
        default = path.name.partition(".")[0]
    else:
        default = section.take("data", str)
        if default == "saddle":
            source = Saddle(section.take("rows", int, 21_000), section.take("random_state", int, 0))
        else:
            source = BenchmarkData(default)
    name = section.take("name", str, default)
    title = section.take("title", str, name)
    folds = section.take("folds", int, None)
    if folds is not None:
        if folds < 2:
            raise ValueError(f"{section.where}: 'folds' is {folds}; at least 2 are needed.")
        return [Task(name, title, source, CrossValidation(folds))]
    train = section.take("train", (int, float, list))
    n_test = section.take("test_at_most", int, test_at_most)
    n_test = None if n_test is None else _capped(n_test, test_at_most)
    if isinstance(train, float):
        return [Task(name, title, source, Share(train, train_at_most, n_test))]
    if not isinstance(train, list):
        return [Task(name, title, source, Holdout(_capped(train, train_at_most), n_test))]
    _check_sizes(train, section.where)
    chosen = dict.fromkeys(_capped(size, train_at_most) for size in sizes or train)
    return [
        Task(f"{name}-{size}", f"{title}, {size:,} rows", source, Holdout(size, n_test)) for size in chosen
    ]


def _check_sizes(sizes: Sequence[Any], where: str) -> None:
    if not sizes or any(type(size) is not int for size in sizes):
        raise ValueError(f"{where}: 'train' is {sizes!r}; a list of integers is needed.")


def _capped(size: int, at_most: int | None) -> int:
    return size if at_most is None else min(size, at_most)


def _search(content: Mapping[str, Any], where: str) -> Search:
    section = _Section(content, f"{where}, [search]")
    search = Search(
        section.take("folds", int, 5),
        section.take("scoring", str, "mae"),
        section.take("rows_at_most", int, None),
        float(section.take("give_up", _NUMBER, 5.0)),
    )
    section.finish()
    return search


def _limits(content: Mapping[str, Any], where: str) -> Limits:
    section = _Section(content, f"{where}, [limits]")
    limits = Limits(
        float(section.take("seconds", _NUMBER, 3600)),
        float(section.take("memory", _NUMBER, 8)),
    )
    section.finish()
    return limits
