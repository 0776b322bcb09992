"""Estimators as data for model files, and estimators made of the data of a file."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar, get_origin, get_type_hints

from isbor.files.checks import need
from isbor.files.errors import ModelFileError, damaged
from isbor.files.models import StoredModel, content_of, stored_model

__all__ = ["file_content", "restored"]

_NOT_STORED = ("callback", "checkpoint")  # parameters that belong to a process and a machine
# Attributes that not every fitted estimator has.
_SOMETIMES = {
    "feature_names_in_",  # with names
    "_background",  # with features, not a precomputed kernel
    "_reference",  # with two classes
    "_response_thresholds",  # with probabilities
    "_lapse",
    "_learned",  # with training rows
    "_stream",
    "_renewed_at",
    "_renewed_for",
    "_rows_left_out",  # without
}


class Storable(Protocol):
    """What an estimator does for model files."""

    _of_training_rows: ClassVar[tuple[str, ...]]

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters."""

    def _check_restored(self) -> None:
        """Raise an error unless all attributes belong together, and a model can predict with them."""


E = TypeVar("E", bound=Storable)


def file_content(estimator: Storable, training_rows: bool) -> bytes:
    """Return the content of a file, from which the estimator has been restored for a trial."""
    kind = type(estimator)
    if not kind.__module__.startswith("isbor."):
        raise ModelFileError(
            f"The model is of the class {kind.__name__}, which is not one of isbor; model files hold models "
            "of isbor only. Save the estimator of isbor that it is made of, or pickle it."
        )
    fitted = {name: value for name, value in vars(estimator).items() if name not in vars(kind())}
    if not training_rows:
        dropped = [fitted.pop(name) for name in kind._of_training_rows if name in fitted]
        if dropped:
            fitted["_rows_left_out"] = True
    parameters = {name: vars(estimator)[name] for name in _stored_parameters(kind)}
    content = content_of(StoredModel(kind.__name__, parameters, fitted), _types(kind))
    restored({kind.__name__: kind}, content)
    return content


def restored(kinds: Mapping[str, type[E]], content: bytes) -> E:
    """Return the estimator of one of these classes that a file holds, if it can predict."""
    stored = stored_model(content, {name: _types(kind) for name, kind in kinds.items()})
    kind = kinds[stored.estimator]
    lacking = _stored_parameters(kind) ^ stored.parameters.keys()
    lacking |= {name for name in _types(kind) if not hasattr(kind, name)} - _SOMETIMES - stored.fitted.keys()
    need(not lacking, f"it lacks, or should not have, {', '.join(sorted(lacking)[:5])}")
    estimator = kind(**stored.parameters)
    vars(estimator).update(stored.fitted)
    try:
        estimator._check_restored()
    except ModelFileError:
        raise
    except Exception as error:  # whatever numbers that make no sense may lead to
        raise damaged(f"its model cannot predict ({error})") from error
    return estimator


def _stored_parameters(kind: type[Storable]) -> set[str]:
    """Return the names of the parameters that files hold."""
    return kind().get_params(deep=False).keys() - {*_NOT_STORED}


def _types(kind: type[Storable]) -> dict[str, Any]:
    """Return the types of all attributes that a fitted estimator may have."""
    hints = get_type_hints(kind)
    before = vars(kind())
    return {
        name: hint for name, hint in hints.items() if name not in before and get_origin(hint) is not ClassVar
    }
