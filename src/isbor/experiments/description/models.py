"""The models that an experiment compares: which estimator, with which parameters, searched over what.

A model is plain data, so that it can be written in a file, told apart from a changed one, and sent to another
process. `CATALOGUE` has the six systems of the paper by name, with the paper's grids (section "Settings and
parameters"), and two baselines: a linear model and scikit-learn's boosted trees, neither tuned. Five things
differ from the paper:

- KDLOR's C only scales its score and changes no label: it is not searched.
- ISVOR is there twice. With all thresholds' constraints ("isvor") it has the solution of SVOR: it is searched
  by SVOR, which takes a small part of the time and finds the same labels, and it is not ranked beside SVOR.
  "isvor-adjacent" has the paper's constraints.
- Points of a grid that are far behind after a fold are not tried on the next (`running.grid_search`).
- While they are searched, ISBOR makes no restarts and at most 40 passes, of which widths that suit the data
  need fewer, and the machines learn no probabilities.
- ISBOR is there three times: as users call it ("isbor"), with one width by the evidence ("isbor-evidence"),
  and with one width by cross-validation, as in the paper ("isbor-cv").
"""

import difflib
import importlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = [
    "CATALOGUE",
    "Model",
    "as_plain",
    "catalogue_model",
    "make_estimator",
    "plain_parameters",
]

Inputs = Literal["table", "numbers"]

_WIDTHS = tuple(10.0**k for k in range(-3, 4))
_COSTS = tuple(10.0**k for k in range(-1, 4))
_NO_PROBABILITIES = {"probability": False}


def as_plain(value: object) -> Any:
    """Return a number or an array of NumPy as Python's own; anything else is a TypeError, as for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is no number and no array of NumPy.")


@dataclass(frozen=True, slots=True)
class Model:
    """An estimator by its import path, its parameters, and those to be searched."""

    name: str
    title: str
    estimator: str  # "package.module:Class"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # empty: nothing to search
    search_parameters: Mapping[str, Any] = field(default_factory=dict)  # that take less time while searching
    searched_by: str = ""  # import path of an estimator that finds the same labels in less time
    inputs: Inputs = "table"  # "numbers": categories one-hot, missing marked, columns standardised
    digest: str = ""  # of the estimator's source, where it is a file beside a description
    tuning: str = ""  # what a model without a grid chooses in its fit; empty: nothing
    same_as: str = ""  # a model that has the same solution, given the same parameters and grid
    rows_at_most: int | None = None  # training rows that it can take: the first of them; None: all
    splits_at_most: int | None = None  # of a model that takes long; None: all

    def __post_init__(self) -> None:
        for name, points in self.grid.items():
            if isinstance(points, str) or not len(points):
                raise ValueError(
                    f"The grid of {name!r} of the model {self.name!r} is {points!r}; a list of at least one "
                    "value is needed."
                )
        for values in (self.parameters, self.grid, self.search_parameters):
            for name, value in values.items():
                try:
                    json.dumps(value, default=as_plain)
                except TypeError:
                    raise ValueError(
                        f"The parameter {name!r} of the model {self.name!r} is {value!r}; numbers, texts, "
                        "true, false and lists of these are what a model can be described by."
                    ) from None


CATALOGUE = {
    model.name: model
    for model in (
        Model("isbor", "ISBOR", "isbor:ISBOR", tuning="basis family by held-out likelihood"),
        Model(
            "isbor-evidence",
            "ISBOR (one width, evidence)",
            "isbor:ISBOR",
            {"basis": "rbf"},
            tuning="width by the evidence",
        ),
        Model(
            "isbor-cv",
            "ISBOR (one width, CV)",
            "isbor:ISBOR",
            {"basis": "rbf"},
            {"gamma": tuple(10.0**k for k in range(-2, 2))},
            {"patience": 0, "max_iter": 40},
        ),
        Model("sbor", "SBOR", "isbor:SBOR", grid={"gamma": _WIDTHS}),
        Model(
            "svor",
            "SVOR",
            "isbor:SVOR",
            grid={"gamma": _WIDTHS, "C": _COSTS},
            search_parameters=_NO_PROBABILITIES,
        ),
        Model(
            "isvor",
            "ISVOR",
            "isbor:ISVOR",
            grid={"gamma": _WIDTHS, "C": _COSTS},
            search_parameters=_NO_PROBABILITIES,
            searched_by="isbor:SVOR",
            same_as="svor",
        ),
        Model(
            "isvor-adjacent",
            "ISVOR (paper's constraints)",
            "isbor:ISVOR",
            {"constraints": "adjacent"},
            {"gamma": _WIDTHS, "C": _COSTS},
            _NO_PROBABILITIES,
        ),
        Model("gpor", "GPOR", "isbor:GPOR", tuning="kernel parameters by the evidence"),
        Model(
            "kdlor",
            "KDLOR",
            "isbor:KDLOR",
            grid={"gamma": _WIDTHS, "u": tuple(10.0**k for k in range(-6, 0))},
            search_parameters=_NO_PROBABILITIES,
        ),
        Model("linear", "Linear (ordered probit)", "isbor.estimators.linear:OrderedProbit"),
        Model(
            "trees",
            "Boosted trees",
            "isbor.experiments.description.baselines:BoostedTrees",
            {"random_state": 0},
            inputs="numbers",
        ),
    )
}
"""The models that a name alone stands for."""


def catalogue_model(name: str) -> Model:
    """Return a model of the catalogue by its name."""
    if name not in CATALOGUE:
        close = difflib.get_close_matches(name, CATALOGUE, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no model {name!r}.{hint} The models are {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def make_estimator(path: str, parameters: Mapping[str, Any]) -> Any:
    """Return an unfitted estimator that works on one thread, if it can be told.

    Parameters
    ----------
    path : str
        Import path, "package.module:Class".
    parameters : mapping
        Arguments of the class.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise ValueError(f"The estimator is {path!r}; a path like 'package.module:Class' is needed.")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The estimator {path!r} cannot be imported ({error}). Check its name, or install its package."
        ) from error
    if not hasattr(found, "fit"):
        raise ValueError(f"{path!r} has no fit; the class of an estimator is needed.")
    known = inspect.signature(found).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    unknown = [] if takes_any else [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(f"{path!r} has no parameter {unknown[0]!r}; it knows {', '.join(known) or 'none'}.")
    common = {"n_jobs": 1} if "n_jobs" in known else {}
    try:
        return found(**{**common, **plain_parameters(parameters)})
    except TypeError as error:
        raise ValueError(f"{path!r} cannot be made with the parameters given ({error}).") from error


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with numbers of NumPy as Python's own."""
    return {
        name: as_plain(value) if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
