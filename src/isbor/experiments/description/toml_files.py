"""Experiments described in TOML files: docs/experiments.md has an example with all that can be said."""

import importlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from isbor.experiments.description.experiment import Experiment, Limits, Search
from isbor.experiments.description.models import CATALOGUE, Model, catalogue_model, did_you_mean
from isbor.experiments.description.tasks import (
    BenchmarkData,
    CrossValidation,
    Holdout,
    Saddle,
    Share,
    Source,
    TableFile,
    Task,
    file_digest,
    label_text,
)

__all__ = ["STUDIES", "load_study", "read_description"]

STUDIES = ("synthetic", "benchmarks")
"""The studies of the paper."""

# The entries of each table and their types; a float may be written as an integer.
_EXPERIMENT: dict[str, type] = {
    **{"name": str, "title": str, "about": str, "models": list, "model": dict, "tasks": list},
    **{"splits": int, "seed": int, "search": dict, "limits": dict, "quick": dict},
}
_QUICK: dict[str, type] = {
    **{"splits": int, "search": dict, "limits": dict},
    **{"train": list, "train_at_most": int, "test_at_most": int},
}
_SEARCH = {"folds": int, "scoring": str, "rows_at_most": int, "give_up": float}
_LIMITS = {"seconds": float, "memory": float}
_MODEL = {
    **{"title": str, "estimator": str, "parameters": dict, "grid": dict},
    **{"search_parameters": dict, "searched_by": str, "inputs": str},
}
_FILE: dict[str, type] = {"file": str, "target": str, "order": list, "drop": list}
_SADDLE: dict[str, type] = {"data": str, "rows": int, "random_state": int}
_IN_WORDS: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a table",
}


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
        hint = did_you_mean(name, STUDIES)
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
    top = _entries(content, _EXPERIMENT, where, needed=("name", "models", "tasks"))
    changes: dict[str, Any] = {}
    if quick:
        changes = _entries(top.get("quick", {}), _QUICK, f"{where}, [quick]")
        if not changes:
            raise ValueError(f"{where} has no [quick] section; run it without --quick.")
    search = {**top.get("search", {}), **changes.get("search", {})}
    limits = {**top.get("limits", {}), **changes.get("limits", {})}
    return Experiment(
        name=top["name"],
        title=top.get("title", top["name"]),
        models=tuple(_models(top["models"], top.get("model", {}), where, directory)),
        tasks=tuple(_tasks(top["tasks"], changes, where, directory)),
        splits=changes.get("splits", top.get("splits", 20)),
        seed=top.get("seed", 0),
        search=Search(**_entries(search, _SEARCH, f"{where}, [search]")),
        limits=Limits(**_entries(limits, _LIMITS, f"{where}, [limits]")),
        about=top.get("about", "").strip(),
    )


def _entries(
    content: Any, kinds: Mapping[str, type], where: str, needed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the entries of a table, each known, of its type, and none missing that is needed."""
    if not isinstance(content, dict):
        raise ValueError(f"{where} is {content!r}; a table is needed.")
    for key in needed:
        if key not in content:
            raise ValueError(f"{where}: {key!r} is missing.")
    entries = {}
    for key, value in content.items():
        if key not in kinds:
            hint = did_you_mean(key, kinds)
            raise ValueError(f"{where}: unknown entry {key!r}.{hint} Entries are {', '.join(kinds)}.")
        kind = kinds[key]
        number = float(value) if kind is float and type(value) is int else value
        if not isinstance(number, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{where}: {key!r} is {value!r}; {_IN_WORDS[kind]} is needed.")
        entries[key] = number
    return entries


def _models(
    names: Sequence[Any], described: Mapping[str, Any], where: str, directory: Path
) -> Iterator[Model]:
    unused = [name for name in described if name not in names]
    if unused:
        raise ValueError(f"{where}: [model.{unused[0]}] is not listed in 'models'; add it there.")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"{where}: 'models' holds {name!r}; strings are needed.")
        if name in described:
            yield _model(name, described[name], f"{where}, [model.{name}]", directory)
        else:
            yield catalogue_model(name)


def _model(name: str, content: Any, where: str, directory: Path) -> Model:
    entries = _entries(content, _MODEL, where, needed=() if name in CATALOGUE else ("estimator",))
    base = CATALOGUE.get(name)
    if base is None or entries.get("estimator", base.estimator) != base.estimator:
        base = Model(name, name, entries["estimator"])  # the catalogue's parameters are for another one
    if "parameters" in entries:
        entries["parameters"] = {**base.parameters, **entries["parameters"]}
        entries["tuning"] = ""
    if "grid" in entries:
        lists = entries["grid"].items()
        entries["grid"] = {key: tuple(value) if isinstance(value, list) else value for key, value in lists}
    module = directory / f"{entries.get('estimator', base.estimator).partition(':')[0].partition('.')[0]}.py"
    return replace(base, **entries, digest=file_digest(module) if module.is_file() else "")


def _tasks(
    contents: Sequence[Any], changes: Mapping[str, Any], where: str, directory: Path
) -> Iterator[Task]:
    """Yield the tasks: of an entry with several numbers of training rows, one for each."""
    train_at_most, test_at_most = changes.get("train_at_most"), changes.get("test_at_most")
    fewer = _sizes(changes["train"], f"{where}, [quick]") if "train" in changes else None
    for number, content in enumerate(contents, start=1):
        place = f"{where}, [[tasks]] number {number}"
        entries = _task_entries(content, place)
        default, source = _source(entries, directory)
        name = entries.get("name", default)
        title = entries.get("title", name)
        if "folds" in entries:
            yield Task(name, title, source, CrossValidation(entries["folds"]))
            continue
        n_test = _least(entries.get("test_at_most"), test_at_most)
        train = entries["train"]
        if isinstance(train, float):
            yield Task(name, title, source, Share(train, train_at_most, n_test))
            continue
        sizes = _sizes(train, place)
        if not isinstance(train, list):
            yield Task(name, title, source, Holdout(_least(train, train_at_most), n_test))
            continue
        for size in dict.fromkeys(_least(size, train_at_most) for size in fewer or sizes):
            yield Task(f"{name}-{size}", f"{title}, {size:,} rows", source, Holdout(size, n_test))


def _task_entries(content: Any, where: str) -> dict[str, Any]:
    """Return the entries of a task; which there may be follows from its data and its way to split them."""
    shown = content if isinstance(content, dict) else {}
    data = _FILE if "file" in shown else _SADDLE if shown.get("data") == "saddle" else {"data": str}
    scheme = {"folds": int} if "folds" in shown else {"train": object, "test_at_most": int}
    needed = ["file", "target"] if "file" in shown else ["data"]
    known = {**data, "name": str, "title": str, **scheme}
    return _entries(content, known, where, [*needed, next(iter(scheme))])


def _source(entries: Mapping[str, Any], directory: Path) -> tuple[str, Source]:
    """Return the data of a task, and its name if it is given none."""
    if "file" in entries:
        path = directory / entries["file"]
        order = [label_text(label) for label in entries.get("order", [])]
        drop = [str(name) for name in entries.get("drop", [])]
        return path.name.partition(".")[0], TableFile.of(path, entries["target"], order, drop)
    if entries["data"] == "saddle":
        return "saddle", Saddle(**{key: entries[key] for key in ("rows", "random_state") if key in entries})
    return entries["data"], BenchmarkData(entries["data"])


def _sizes(train: Any, where: str) -> list[int]:
    """Return the numbers of training rows."""
    sizes = train if isinstance(train, list) else [train]
    if not sizes or any(type(size) is not int for size in sizes):
        raise ValueError(
            f"{where}: 'train' is {train!r}; a number of rows, a list of such numbers, or a share is needed."
        )
    return sizes


def _least(*numbers: int | None) -> Any:
    """Return the smallest of those that are there."""
    return min((number for number in numbers if number is not None), default=None)
