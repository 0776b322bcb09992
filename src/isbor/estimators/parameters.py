"""Allowed values of the parameters of estimators, and the error for others."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

__all__ = [
    "BOOLEAN",
    "CALLABLE",
    "DICT",
    "NONE",
    "PATH",
    "POSITIVE",
    "RANDOM_STATE",
    "Allowed",
    "ParameterError",
    "check_coverage",
    "check_parameters",
    "choice",
    "integer",
    "number",
]


class ParameterError(ValueError, TypeError):
    """A parameter has a value or a type that is not allowed."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allowed values of a parameter; ``a | b`` allows the values of both."""

    descriptions: tuple[str, ...]
    contains: Callable[[Any], bool]

    def __or__(self, other: "Allowed") -> "Allowed":
        return Allowed(
            self.descriptions + other.descriptions,
            lambda value: self.contains(value) or other.contains(value),
        )

    def __str__(self) -> str:
        *others, last = self.descriptions
        return f"{', '.join(others)} or {last}" if others else last


def choice(*options: str) -> Allowed:
    """Allow the given strings."""
    return Allowed(tuple(map(repr, options)), lambda value: isinstance(value, str) and value in options)


def number(*, above: float = -inf, at_least: float = -inf, below: float = inf) -> Allowed:
    """Allow finite numbers, but not booleans."""
    return _numbers(Real, "a finite number", above, at_least, below)


def integer(*, at_least: float = -inf) -> Allowed:
    """Allow integers, but not booleans."""
    return _numbers(Integral, "an integer", -inf, at_least, inf)


def _numbers(number_type: type[Any], noun: str, above: float, at_least: float, below: float) -> Allowed:
    bounds = f" above {above}" * (above > -inf) + f" of at least {at_least}" * (at_least > -inf)
    bounds += " and" * (bounds != "" and below < inf) + f" below {below}" * (below < inf)
    return Allowed(
        (noun + bounds,),
        lambda value: (
            isinstance(value, number_type)
            and not isinstance(value, bool)
            and above < value < below  # false for NaN
            and at_least <= value
        ),
    )


def _is_random_state(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return not isinstance(value, bool)


POSITIVE = number(above=0)
BOOLEAN = Allowed(("True", "False"), lambda value: isinstance(value, bool | np.bool_))
NONE = Allowed(("None",), lambda value: value is None)
CALLABLE = Allowed(("a function",), callable)
DICT = Allowed(("a dict",), lambda value: isinstance(value, Mapping))
PATH = Allowed(("a path",), lambda value: isinstance(value, str | PathLike))
RANDOM_STATE = Allowed(("an integer from 0 to 2**32 - 1", "a RandomState", "None"), _is_random_state)


def check_parameters(estimator: BaseEstimator, allowed: Mapping[str, Allowed]) -> None:
    """Raise one error that names every parameter whose value is not allowed."""
    faults = [
        f"{name}={reprlib.repr(value)}: {allowed[name]} is needed"
        for name, value in estimator.get_params(deep=False).items()
        if name in allowed and not allowed[name].contains(value)
    ]
    if faults:
        raise ParameterError(f"{type(estimator).__name__} has {'; '.join(faults)}.")


def check_coverage(coverage: float) -> None:
    """Raise ValueError unless it is between 0 and 1."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is {coverage}; a number between 0 and 1 is needed, for example 0.9.")
