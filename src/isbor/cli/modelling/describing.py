"""What a model is like, as text and as JSON: classes, functions, thresholds and the features that matter."""

import json
from pathlib import Path

from isbor.cli.modelling.pictures import axis, bar
from isbor.estimators.description import Description
from isbor.estimators.loading import load

__all__ = ["as_json_text", "as_text", "describe_model"]

_MOST_FEATURES = 10
_NAME_WIDTH = 30


def describe_model(path: Path) -> Description:
    """Describe the model in a file."""
    return Description.of(load(path))


def as_json_text(found: Description) -> str:
    """Return all as JSON."""
    content = {name: getattr(found, name) for name in found.__slots__}
    content["relevance"] = (
        None if found.relevance is None else dict(zip(found.features, found.relevance, strict=True))
    )
    return json.dumps(content, ensure_ascii=False, indent=2, default=str)


def as_text(found: Description) -> str:
    """Return it as lines of text."""
    given = ", ".join(f"{name}={value!r}" for name, value in found.parameters.items())
    lines = [f"{found.estimator}({given}), {len(found.features)} features{_kinds(found)}"]
    lines += ["Classes, lowest first:", *_class_lines(found)]
    family = "" if found.basis is None else f", family {found.basis}: {found.selection}"
    lines.append(f"{found.parts.capitalize()}: {found.size}{family}")
    shown = ", ".join(f"{threshold:.2f}" for threshold in found.thresholds)
    lines.append(f"Thresholds of the score: {shown}")
    lines.append(f"  {axis(found.thresholds, [str(label) for label in found.classes])}")
    if found.relevance is not None:
        lines += ["Features that matter, with their shares:", *_feature_lines(found)]
    if found.stop_reason is not None:
        lines.append(f"End of the fit: {found.stop_reason}")
    return "\n".join(lines)


def _kinds(found: Description) -> str:
    """Say which features are categories, with the number of these."""
    features = zip(found.features, found.n_categories, strict=True)
    counts = [f"{name} ({n})" for name, n in features if n is not None]
    if not counts:
        return ""
    more = f", … {len(counts) - _MOST_FEATURES} more" if len(counts) > _MOST_FEATURES else ""
    return f"; of categories: {', '.join(counts[:_MOST_FEATURES])}{more}"


def _class_lines(found: Description) -> list[str]:
    names = [str(label) for label in found.classes]
    if found.counts is None:
        return [f"  {', '.join(names)}"]
    width = max(map(len, names))
    return [
        f"  {name:{width}}{count:10,}  {bar(count / max(found.counts))}".rstrip()
        for name, count in zip(names, found.counts, strict=True)
    ]


def _feature_lines(found: Description) -> list[str]:
    shown = found.most_relevant(_MOST_FEATURES)
    lines = [f"  {name:{_NAME_WIDTH}.{_NAME_WIDTH}}{share:6.1%}  {bar(share)}" for name, share in shown]
    left = len(found.features) - len(shown)
    return [*lines, f"  {left} more"] if left else lines
