"""What notebooks ask of an estimator."""

from typing import Any

from sklearn.base import BaseEstimator

from isbor.estimators.description import Description
from isbor.estimators.panel import panel

__all__ = ["ShownInNotebooks"]


class ShownInNotebooks(BaseEstimator):
    """An estimator that shows a panel above scikit-learn's diagram if it is fitted."""

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        return panel(Description.of(self)) + diagram if hasattr(self, "classes_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle
