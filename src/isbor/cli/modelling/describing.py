"""What a model is like: classes, functions, thresholds and the features that matter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from isbor.cli.modelling.pictures import axis, bar
from isbor.estimators.base import OrdinalClassifier
from isbor.estimators.loading import load

__all__ = ["Description", "describe_model"]

_MOST_FEATURES = 10
_NAME_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Description:
    """A fitted model in words and numbers. It prints as text."""

    estimator: str
    parameters: Mapping[str, Any]  # that are not at their defaults
    classes: tuple[Any, ...]
    counts: tuple[int, ...] | None  # training rows of each class, if they are known
    features: tuple[str, ...]
    relevance: tuple[float, ...] | None  # of each feature
    thresholds: tuple[float, ...]
    basis: str | None
    selection: str | None  # why this basis
    n_functions: int | None
    stop_reason: str | None

    @classmethod
    def of(cls, model: OrdinalClassifier, counts: tuple[int, ...] | None = None) -> Self:
        """Describe a fitted model."""
        kind: Any = type(model)
        defaults = kind().get_params()
        given = {
            name: value
            for name, value in model.get_params().items()
            if name not in ("classes", "verbose", "checkpoint") and repr(value) != repr(defaults[name])
        }
        names = getattr(model, "feature_names_in_", None)
        features = [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)
        relevance = getattr(model, "feature_relevance_", None)
        selection = getattr(model, "selection_", None)
        reason = getattr(model, "stop_reason_", None)
        return cls(
            estimator=type(model).__name__,
            parameters=given,
            classes=tuple(model.classes_.tolist()),
            counts=counts,
            features=tuple(features),
            relevance=None if relevance is None else tuple(relevance.tolist()),
            thresholds=tuple(np.asarray(getattr(model, "thresholds_", ())).ravel().tolist()),
            basis=getattr(model, "basis_", None),
            selection=None if selection is None else selection.reason,
            n_functions=getattr(model, "n_relevance_", None),
            stop_reason=None if reason is None else str(reason),
        )

    def as_json(self) -> str:
        """Return all as JSON."""
        content = {name: getattr(self, name) for name in self.__slots__}
        content["relevance"] = (
            None if self.relevance is None else dict(zip(self.features, self.relevance, strict=True))
        )
        return json.dumps(content, ensure_ascii=False, indent=2, default=str)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        lines = [f"{self.estimator}({given}), {len(self.features)} features"]
        lines += ["Classes, lowest first:", *self._class_lines()]
        if self.basis is not None:
            lines.append(f"Basis functions: {self.n_functions}, family {self.basis}: {self.selection}")
        if self.thresholds:
            shown = ", ".join(f"{threshold:.2f}" for threshold in self.thresholds)
            lines.append(f"Thresholds of the score: {shown}")
            lines.append(f"  {axis(self.thresholds, [str(label) for label in self.classes])}")
        if self.relevance is not None:
            lines += ["Features that matter, with their shares:", *self._feature_lines(self.relevance)]
        if self.stop_reason is not None:
            lines.append(f"End of the fit: {self.stop_reason}")
        return "\n".join(lines)

    def _class_lines(self) -> list[str]:
        names = [str(label) for label in self.classes]
        if self.counts is None:
            return [f"  {', '.join(names)}"]
        width = max(map(len, names))
        return [
            f"  {name:{width}}{count:10,}  {bar(count / max(self.counts))}".rstrip()
            for name, count in zip(names, self.counts, strict=True)
        ]

    def _feature_lines(self, relevance: tuple[float, ...]) -> list[str]:
        order = np.argsort(-np.array(relevance), kind="stable")
        shown = [j for j in order[:_MOST_FEATURES] if relevance[j] > 0]
        lines = [
            f"  {self.features[j]:{_NAME_WIDTH}.{_NAME_WIDTH}}{relevance[j]:6.1%}  {bar(relevance[j])}"
            for j in shown
        ]
        left = len(relevance) - len(shown)
        return [*lines, f"  {left} more"] if left else lines


def describe_model(path: Path) -> Description:
    """Describe the model in a file."""
    return Description.of(load(path))
