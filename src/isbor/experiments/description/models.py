"""The models that an experiment compares: estimator, parameters and grid.

A model is plain data: it can be read from a file, compared with a changed one, and sent to another process.
`CATALOGUE` has the six systems of the paper by name, with the paper's grids (section "Settings and
parameters"), and two baselines: a linear model and scikit-learn's boosted trees, neither tuned. Five things
differ from the paper:

- KDLOR's C scales its score and changes no label, so it is not searched.
- ISVOR occurs twice. With implicit constraints ("isvor") it has the solution of SVOR. SVOR searches its grid,
  which is faster and finds the same labels, and it is not ranked beside SVOR. "isvor-adjacent" has the
  paper's constraints.
- Grid points that are far behind after a fold are dropped (`running.grid_search`).
- During the search, ISBOR makes no restarts and at most 40 passes (widths that suit the data need fewer), and
  the support vector machines and KDLOR learn no probabilities.
- ISBOR occurs three times: with its defaults ("isbor"), with one width by the evidence ("isbor-evidence"),
  and with one width by cross-validation, as in the paper ("isbor-cv").
"""

import difflib
import importlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

__all__ = [
    "CATALOGUE",
    "Model",
    "as_plain",
    "catalogue_model",
    "did_you_mean",
    "make_estimator",
    "plain_parameters",
]

Inputs = Literal["table", "numbers"]

_WIDTHS = tuple(10.0**k for k in range(-3, 4))
_COSTS = tuple(10.0**k for k in range(-1, 4))
_NO_PROBABILITIES = {"probability": False}


def as_plain(value: object) -> Any:
    """Return a NumPy number or array as Python numbers; `json.dumps` calls this for unknown types."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is neither a number nor an array.")


@dataclass(frozen=True, slots=True)
class Model:
    """An estimator by its import path, its parameters, and its grid.

    See Also
    --------
    CATALOGUE : Models by name.

    Examples
    --------
    >>> from isbor.experiments import Model
    >>> model = Model("svor", "SVOR", "isbor:SVOR", {"probability": False}, grid={"C": [1.0, 10.0]})
    >>> model.parameters
    {'probability': False}
    """

    name: str
    title: str
    estimator: str  # "package.module:Class"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # empty: no search
    search_parameters: Mapping[str, Any] = field(default_factory=dict)  # for a faster search
    searched_by: str = ""  # import path of a faster estimator with the same labels
    inputs: Inputs = "table"  # "numbers": categories one-hot, missing marked, columns standardised
    digest: str = ""  # of the estimator's source file, if it lies beside the TOML file
    tuning: str = ""  # what a model without a grid chooses in its fit; empty: nothing
    same_as: str = ""  # a model that has the same solution, given the same parameters and grid
    packages: tuple[str, ...] = ()  # whose versions a record states, as they are called on PyPI
    rows_at_most: int | None = None  # train on the first rows only; None: all rows
    splits_at_most: int | None = None  # run the first splits only; None: all splits

    def __post_init__(self) -> None:
        if self.inputs not in get_args(Inputs):
            raise ValueError(
                f"The inputs of the model {self.name!r} are {self.inputs!r}; 'table' or 'numbers' is needed."
            )
        for name, points in self.grid.items():
            if not isinstance(points, list | tuple | range | np.ndarray) or not len(points):
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
                        f"The parameter {name!r} of the model {self.name!r} is {value!r}; numbers, strings, "
                        "booleans and lists of these are allowed."
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
"""Models by name."""


def catalogue_model(name: str) -> Model:
    """Return a model of the catalogue by its name."""
    if name not in CATALOGUE:
        hint = did_you_mean(name, CATALOGUE)
        raise ValueError(f"There is no model {name!r}.{hint} The models are {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a question that names the most similar of the known words, nothing if none is similar."""
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def make_estimator(path: str, parameters: Mapping[str, Any]) -> Any:
    """Return an unfitted estimator by its import path; if it has a parameter n_jobs, it uses one thread."""
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise ValueError(
            f"The estimator is {path!r}; an import path such as 'package.module:Class' is needed."
        )
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The estimator {path!r} cannot be imported ({error}). Check its name, or install its package."
        ) from error
    if not hasattr(found, "fit"):
        raise ValueError(f"{path!r} has no method fit; name the class of an estimator.")
    known = inspect.signature(found).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    unknown = [] if takes_any else [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(
            f"{path!r} has no parameter {unknown[0]!r}; its parameters are {', '.join(known) or 'none'}."
        )
    common = {"n_jobs": 1} if "n_jobs" in known else {}
    try:
        return found(**{**common, **plain_parameters(parameters)})
    except TypeError as error:
        raise ValueError(f"{path!r} cannot be created with these parameters ({error}).") from error


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with NumPy numbers as Python numbers."""
    return {
        name: as_plain(value) if isinstance(value, np.generic) else value
        for name, value in parameters.items()
    }
