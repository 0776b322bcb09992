"""What a fitted model is like: the facts that ``isbor info`` prints and notebooks show."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np

__all__ = ["Description"]

_SIZES = {
    "relevance_": "basis functions",
    "support_": "support vectors",
    "_source": "rows of the Gaussian process",
    "coef_": "slopes",
}
_NOT_TOLD = ("classes", "verbose", "checkpoint")  # parameters that say nothing of the model, or are told


@dataclass(frozen=True, slots=True)
class Description:
    """A fitted model in words and numbers."""

    estimator: str
    parameters: Mapping[str, Any]  # that are not at their defaults
    classes: tuple[Any, ...]
    counts: tuple[int, ...] | None  # training rows of each class, if they are known
    total_weight: float  # of the training rows: their number, unless they have weights
    features: tuple[str, ...]
    n_categories: tuple[int | None, ...]  # of each feature; None: it is a number
    relevance: tuple[float, ...] | None  # of each feature
    thresholds: tuple[float, ...]
    basis: str | None
    selection: str | None  # why this basis
    size: int  # number of …
    parts: str  # … what the score is made of
    stop_reason: str | None

    @classmethod
    def of(cls, model: Any, counts: tuple[int, ...] | None = None) -> Self:
        """Describe a fitted estimator of isbor."""
        defaults = {name: known.default for name, known in signature(type(model)).parameters.items()}
        given = {
            name: value
            for name, value in model.get_params().items()
            if name not in _NOT_TOLD and repr(value) != repr(defaults[name])
        }
        names = getattr(model, "feature_names_in_", None)
        features = [f"x{j}" for j in range(model.n_features_in_)] if names is None else map(str, names)
        relevance = getattr(model, "feature_relevance_", None)
        selection = getattr(model, "selection_", None)
        reason = getattr(model, "stop_reason_", None)
        attribute = next(name for name in _SIZES if hasattr(model, name))
        return cls(
            estimator=type(model).__name__,
            parameters=given,
            classes=tuple(model.classes_.tolist()),
            counts=counts,
            total_weight=model._table.total_weight,
            features=tuple(features),
            n_categories=tuple(None if c is None else len(c) for c in model._encoding.categories),
            relevance=None if relevance is None else tuple(relevance.tolist()),
            thresholds=tuple(np.asarray(model.thresholds_).ravel().tolist()),
            basis=getattr(model, "basis_", None),
            selection=None if selection is None else selection.reason,
            size=len(getattr(model, attribute)),
            parts=_SIZES[attribute],
            stop_reason=None if reason is None else str(reason),
        )

    def most_relevant(self, limit: int) -> list[tuple[str, float]]:
        """Return the features that matter most, with their shares; none if no feature is relevant."""
        shares = np.array(self.relevance or ())
        order = np.argsort(-shares, kind="stable")[:limit]
        return [(self.features[j], float(shares[j])) for j in order if shares[j] > 0]
