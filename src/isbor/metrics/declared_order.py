"""The order of labels that an estimator declares by its parameter ``classes``, or that of one inside it."""

from typing import Any

from sklearn.frozen import FrozenEstimator

__all__ = ["class_parameters", "given_order", "may_declare_order"]


def class_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters `classes` of an estimator and of those inside it."""
    if not hasattr(estimator, "get_params"):
        return {}
    return {
        key: value for key, value in estimator.get_params().items() if key.rpartition("__")[2] == "classes"
    }


def given_order(estimator: Any) -> Any:
    """Return the classes that an estimator or one inside it was given, else None."""
    if isinstance(estimator, FrozenEstimator):  # it hides the parameters
        return given_order(estimator.estimator)
    return next((value for value in class_parameters(estimator).values() if value is not None), None)


def may_declare_order(estimator: Any) -> bool:
    """Return whether an estimator or one inside it has a parameter `classes`, given or not."""
    if isinstance(estimator, FrozenEstimator):
        return may_declare_order(estimator.estimator)
    return bool(class_parameters(estimator))
