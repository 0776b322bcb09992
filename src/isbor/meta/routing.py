"""Arguments of `fit` on their way to what stands inside a meta-estimator.

With scikit-learn's metadata routing (``sklearn.set_config(enable_metadata_routing=True)``), the classifier
inside gets what it requests, such as ``sample_weight`` after ``set_fit_request(sample_weight=True)``, and so
does the splitter of the folds, such as ``groups``. A meta-estimator uses weights itself as well: the rows of
weight zero do not count, and scores are weighted. Without routing, weights go to the classifier, and nothing
else is passed on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from isbor._core.types import FloatArray, IntArray

__all__ = ["Passed", "router_of"]


def router_of(meta: Any, *, fits: bool = True, splits: bool = True) -> MetadataRouter:
    """Return what `fit` of a meta-estimator passes on, if it fits its `estimator` and splits rows by `cv`."""
    router: MetadataRouter = MetadataRouter(owner=meta).add_self_request(meta)
    if fits:
        router.add(estimator=meta.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    if splits and meta.cv is not None and not isinstance(meta.cv, Integral):
        mapping = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=check_cv(meta.cv), method_mapping=mapping)
    return router


@dataclass(frozen=True, slots=True)
class Passed:
    """What `fit` of the classifier inside and `split` of the splitter get besides rows and labels."""

    fit: Mapping[str, Any] = field(default_factory=dict)  # one value for each row, or a value for all
    split: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_weights(cls, estimator: Any, sample_weight: ArrayLike | None) -> Self:
        """Return weights alone."""
        return cls() if sample_weight is None else cls({_weight_parameter(estimator): sample_weight})

    @classmethod
    def from_fit(cls, meta: Any, sample_weight: ArrayLike | None, others: Mapping[str, Any]) -> Self:
        """Return what the arguments of `fit` of a meta-estimator say."""
        if not get_config()["enable_metadata_routing"]:
            if others:
                raise TypeError(
                    f"{type(meta).__name__}.fit got {', '.join(others)}. Only sample_weight is passed on, "
                    "unless metadata routing is on: sklearn.set_config(enable_metadata_routing=True)."
                )
            return cls.of_weights(meta.estimator, sample_weight)
        given = others if sample_weight is None else {"sample_weight": sample_weight, **others}
        if not given:
            return cls()
        routed = process_routing(meta, "fit", **given)
        return cls(
            routed.estimator.fit if "estimator" in routed else {},
            routed.splitter.split if "splitter" in routed else {},
        )

    def of_rows(self, rows: IntArray, n_rows: int) -> Self:
        """Return what the classifier inside gets with some of the rows."""
        chosen = {name: _of_rows(value, rows, n_rows) for name, value in self.fit.items()}
        return replace(self, fit=chosen)

    def with_weights(self, estimator: Any, weight: FloatArray) -> Self:
        """Return it with other weights for the classifier inside."""
        return replace(self, fit={**self.fit, _weight_parameter(estimator): weight})


def _of_rows(value: Any, rows: IntArray, n_rows: int) -> Any:
    array = np.asarray(value)
    return array[rows] if array.shape[:1] == (n_rows,) else value


def _weight_parameter(estimator: Any) -> str:
    """Return the name under which `fit` takes weights: those of a pipeline go to its last step."""
    if not isinstance(estimator, Pipeline) or get_config()["enable_metadata_routing"]:
        return "sample_weight"
    name, last = estimator.steps[-1]
    return f"{name}__{_weight_parameter(last)}"
