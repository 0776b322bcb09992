"""``isbor explain``: where the scores of some rows of a table come from."""

import json
from pathlib import Path
from typing import Any

from isbor.cli.modelling.tables import user_table
from isbor.data.blocks import located
from isbor.estimators.explained import ExplainedClassifier
from isbor.estimators.loading import load
from isbor.inspection.explanation import Explanation

__all__ = ["as_json_text", "as_text", "explain_rows"]

_FIRST_ROWS = 3


def explain_rows(
    model_path: Path, path: str, row: int | None, *, delimiter: str | None, encoding: str | None
) -> tuple[Explanation, int]:
    """Explain one row of a table, or the first few; return the number of the first one as well."""
    model = load(model_path)
    if not isinstance(model, ExplainedClassifier):
        raise ValueError(f"Predictions of {type(model).__name__} cannot be explained; fit ISBOR instead.")
    features = getattr(model, "feature_names_in_", ())
    n_rows = 0
    with user_table(path, names=features, delimiter=delimiter, encoding=encoding) as table:
        for block in table.of_features(model).blocks():
            X: Any = block.X
            n_rows = block.first + len(X)
            if row is None or row < n_rows:
                first = 0 if row is None else row - block.first
                with located(block):
                    some = X.slice(first, _FIRST_ROWS if row is None else 1)
                    return model.explain(some), block.first + first
    raise ValueError(f"There is no row {row}; the table has {n_rows} rows, counted from 0.")


def as_text(explanation: Explanation, first: int) -> str:
    """Return an explanation as it prints, with the numbers that rows have in the table."""
    text = str(explanation)
    for k in reversed(range(len(explanation))):
        text = text.replace(f"Row {k}: class", f"Row {first + k}: class", 1)
    return text


def as_json_text(explanation: Explanation, first: int) -> str:
    """Return scores, probabilities and contributions as JSON."""
    labels, shares = explanation.classes.tolist(), explanation.probabilities
    predicted = explanation.predicted.tolist()
    rows = [
        {
            "row": first + k,
            "prediction": predicted[k],
            "score": float(explanation.score[k]),
            "thresholds": explanation.thresholds[k].tolist(),
            "probabilities": None if shares is None else shares[k].tolist(),
            "values": dict(zip(explanation.feature_names, explanation.values[k], strict=True)),
            "contributions": dict(
                zip(explanation.feature_names, explanation.contributions[k].tolist(), strict=True)
            ),
        }
        for k in range(len(explanation))
    ]
    whole = {"classes": labels, "baseline": explanation.baseline, "rows": rows}
    return json.dumps(whole, ensure_ascii=False, indent=2, default=str)
