"""Names and number of the features of a table, and the check that later tables have the same.

Warnings and errors are worded as in scikit-learn, because its checks of estimators ask for them.
"""

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from isbor._core.warnings import warn_user

__all__ = ["check_names", "check_number", "feature_names"]

_MAX_LISTED = 5


def feature_names(frame: nw.DataFrame[Any] | None) -> tuple[str, ...] | None:
    """Return the names of the columns if they are strings, else None."""
    names = () if frame is None else tuple(frame.columns)
    types = {type(name) for name in names}
    if len(types) > 1 and str in types:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{sorted(kind.__qualname__ for kind in types)} as column name types. Convert all names to "
            "strings, for example with X.columns = X.columns.astype(str)."
        )
    return names if types == {str} else None


def check_names(found: tuple[str, ...] | None, fitted: tuple[str, ...] | None, owner: str) -> None:
    """Raise ValueError if a table has other names than the training table; warn if only one has names."""
    if found == fitted:
        return
    if fitted is None:
        warn_user(f"X has feature names, but {owner} was fitted without feature names", UserWarning)
    elif found is None:
        warn_user(
            f"X does not have valid feature names, but {owner} was fitted with feature names",
            UserWarning,
        )
    else:
        unseen, lacking = set(found) - set(fitted), set(fitted) - set(found)
        message = "The feature names should match those that were passed during fit.\n"
        if unseen:
            message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
        if lacking:
            message += f"Feature names seen at fit time, yet now missing:\n{_listed(lacking)}"
        if not (unseen or lacking):
            message += "Feature names must be in the same order as they were in fit.\n"
        if not lacking:
            message += "Pass X[model.feature_names_in_], which has the columns of fit in their order.\n"
        raise ValueError(message)


def check_number(found: int, fitted: int, owner: str) -> None:
    """Raise ValueError if a table has more or fewer features than the training table."""
    if found != fitted:
        raise ValueError(f"X has {found} features, but {owner} is expecting {fitted} features as input.")


def _listed(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = ["..."] if len(listed) > _MAX_LISTED else []
    return "".join(f"- {name}\n" for name in listed[:_MAX_LISTED] + more)
