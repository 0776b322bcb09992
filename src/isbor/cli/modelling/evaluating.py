"""``isbor evaluate``: scores of predictions beside those of a constant, and a confusion table."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.cli.modelling.tables import user_table
from isbor.data.blocks import located
from isbor.estimators.loading import load
from isbor.metrics import (
    accuracy,
    average_mae,
    log_loss,
    mean_absolute_error,
    quadratic_weighted_kappa,
    ranked_probability_score,
)

__all__ = ["Evaluation", "evaluate_model", "label_codes"]

_NAMES = {
    "mae": "mean absolute error, in classes",
    "average_mae": "the same, averaged over classes",
    "accuracy": "accuracy",
    "kappa": "quadratic weighted kappa",
    "rps": "ranked probability score",
    "log_loss": "log loss, in nats",
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of some predictions. It prints as two tables."""

    classes: list[Any]
    model: dict[str, float]
    baseline: dict[str, float]  # of the median class; probabilities: frequencies of the classes
    median: Any  # the class that the baseline always predicts
    confusion: IntArray  # (r, r) rows with each true and predicted label

    @classmethod
    def of(cls, classes: list[Any], true: IntArray, predicted: IntArray, shares: FloatArray | None) -> Self:
        """Evaluate ranks and probabilities."""
        r = len(classes)
        confusion = np.zeros((r, r), dtype=np.int64)
        np.add.at(confusion, (true, predicted), 1)
        counts = confusion.sum(axis=1)
        median = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        constant = np.full(len(true), median)
        frequencies = np.broadcast_to(counts / counts.sum(), (len(true), r))
        return cls(
            classes,
            _scores(true, predicted, shares, r),
            _scores(true, constant, None if shares is None else frequencies, r),
            classes[median],
            confusion,
        )

    def as_json(self) -> str:
        """Return all numbers as JSON."""
        return json.dumps(
            {
                "rows": int(self.confusion.sum()),
                "classes": self.classes,
                "model": self.model,
                "baseline": {"prediction": self.median, **self.baseline},
                "confusion": self.confusion.tolist(),
            },
            ensure_ascii=False,
            indent=2,
        )

    def __str__(self) -> str:
        constant = f"always {self.median}"
        lines = [f"{f'{int(self.confusion.sum()):,} rows':36}{'model':>9}  {constant}"]
        lines += [
            f"{_NAMES[name]:36}{value:9.4f}  {self.baseline[name]:{len(constant)}.4f}"
            for name, value in self.model.items()
        ]
        if "rps" in self.model:
            lines.append("Probabilities of the constant are the frequencies of the classes in these rows.")
        names = [str(label) for label in self.classes]
        corner = "true, predicted"
        first = max(map(len, [*names, corner]))
        widths = [max(len(name), len(f"{self.confusion.max()}")) for name in names]
        header = "  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
        lines += ["", f"{corner:{first}}  {header}"]
        for name, counts in zip(names, self.confusion, strict=True):
            row = "  ".join(f"{count:{width}}" for count, width in zip(counts, widths, strict=True))
            lines.append(f"{name:{first}}  {row}")
        return "\n".join(lines)


def evaluate_model(
    model_path: Path, path: str, target: str, *, delimiter: str | None, encoding: str | None
) -> Evaluation:
    """Evaluate a model on the rows of a table, read block by block."""
    model = load(model_path)
    classes = model.classes_.tolist()
    has_probabilities = hasattr(model, "predict_proba")
    true, predicted, shares = [], [], []
    with user_table(path, names=[target], delimiter=delimiter, encoding=encoding) as table:
        table.check_column("--target", target)
        for block in table.of_features(model, target=target).blocks():
            X: Any = block.X
            with located(block):
                true.append(label_codes(block.y, classes))
                predicted.append(label_codes(model.predict(X), classes))
                if has_probabilities:
                    shares.append(model.predict_proba(X))
    return Evaluation.of(
        classes,
        np.concatenate(true),
        np.concatenate(predicted),
        np.concatenate(shares) if has_probabilities else None,
    )


def label_codes(labels: Any, classes: list[Any]) -> IntArray:
    """Return the ranks of labels; raise ValueError for labels that are no class."""
    rank = {label: k for k, label in enumerate(classes)}
    native: Any = nw.from_native(labels, pass_through=True, series_only=True)
    listed = native.to_list() if isinstance(native, nw.Series) else np.asarray(labels).tolist()
    unknown = [label for label in dict.fromkeys(listed) if label not in rank]
    if unknown:
        shown = ", ".join("a missing label" if label is None else repr(label) for label in unknown[:5])
        raise ValueError(
            f"The labels have {shown}; the classes are {', '.join(map(str, classes))}. "
            "Leave these rows out, or correct the labels."
        )
    return np.array([rank[label] for label in listed], dtype=np.intp)


def _scores(
    true: IntArray, predicted: IntArray, shares: FloatArray | None, n_classes: int
) -> dict[str, float]:
    labels = list(range(n_classes))
    scores = {
        "mae": mean_absolute_error(true, predicted, labels=labels),
        "average_mae": average_mae(true, predicted, labels=labels),
        "accuracy": accuracy(true, predicted, labels=labels),
        "kappa": quadratic_weighted_kappa(true, predicted, labels=labels),
    }
    if shares is not None:
        scores["rps"] = ranked_probability_score(true, shares, labels=labels)
        scores["log_loss"] = log_loss(true, shares, labels=labels)
    return scores
