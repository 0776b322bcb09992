"""What a notebook shows of a fitted model: a panel of HTML above scikit-learn's diagram of its parameters.

Colours come from the page: text and lines have the colour of the text around them, so that the panel suits
light and dark pages. Names of classes and features are text of the user, and are escaped. Without the style
sheet, which some viewers remove, lists and tables remain.
"""

from html import escape
from importlib import resources
from itertools import pairwise

import numpy as np

from isbor.estimators.description import Description

__all__ = ["panel"]

_MOST_FEATURES = 5
_NARROWEST = 0.09  # share of the width that a threshold needs for its number


def panel(found: Description) -> str:
    """Return a fitted model in a glance, as HTML."""
    style = resources.files("isbor.estimators").joinpath("panel.css").read_text("utf-8")
    lower, upper = escape(str(found.classes[0])), escape(str(found.classes[-1]))
    family = "" if found.basis is None else f" (family {escape(found.basis)})"
    return (
        f'<div class="isbor-model"><style>{style}</style>'
        f"<p><strong>{escape(found.estimator)}</strong>, fitted: {len(found.classes)} classes from {lower} "
        f"to {upper}, {found.size:,} {found.parts}{family}.</p>"
        f'{_axis(found)}<div class="isbor-columns">{_facts(found)}{_features(found)}</div>'
        f"{_thresholds(found)}</div>"
    )


def _axis(found: Description) -> str:
    """Return the axis of the score, cut into classes; the outer ones are as wide as the average inner one."""
    inner = np.diff(found.thresholds)
    if not inner.sum() > 0 or not np.isfinite(inner).all():
        inner = np.ones(len(inner))
    outer = inner.mean() if len(inner) else 1.0
    shares = np.array([outer, *inner, outer]) / (inner.sum() + 2.0 * outer)
    numbers = _numbers(found)
    items, room = [], np.inf  # since the last number
    for k, (label, share) in enumerate(zip(found.classes, shares, strict=True)):
        name, number = escape(str(label)), ""
        if k and room >= _NARROWEST:
            number, room = f'<span class="isbor-number">{numbers[k - 1]}</span> ', 0.0
        room += share
        items.append(
            f'<li style="flex:{share:.4f} 1 0" title="{name}">{number}'
            f'<span class="isbor-name">{name}</span></li>'
        )
    label = "Classes, lowest first; the numbers between them are thresholds of the score"
    return f'<ol class="isbor-axis" aria-label="{label}">{"".join(items)}</ol>'


def _facts(found: Description) -> str:
    facts = {
        "Features": _kinds(found),
        "Training rows": f"{found.total_weight:,.6g} (counted by weight)",
    }
    if found.selection is not None:
        facts[f"Why {found.basis}"] = found.selection
    if found.stop_reason is not None:
        facts["End of the fit"] = found.stop_reason
    rows = (
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in facts.items()
    )
    return f'<table class="isbor-table"><caption>The fit</caption><tbody>{"".join(rows)}</tbody></table>'


def _kinds(found: Description) -> str:
    """Say how many features there are, and how many of them have categories."""
    n_features, with_categories = len(found.features), sum(n is not None for n in found.n_categories)
    return f"{n_features:,}" + (f", {with_categories:,} of them of categories" if with_categories else "")


def _features(found: Description) -> str:
    """Return the features that matter most as bars."""
    if found.relevance is None:
        return ""
    shown = found.most_relevant(_MOST_FEATURES)
    left = len(found.features) - len(shown)
    if left and shown:
        shown.append((f"{left:,} more", max(1.0 - sum(share for _, share in shown), 0.0)))
    rows = "".join(
        f'<tr><th scope="row" class="isbor-name">{escape(name)}</th>'
        f'<td class="isbor-share">{share:.1%}</td><td class="isbor-cell" aria-hidden="true">'
        f'<span class="isbor-bar" style="width:{share:.1%}"></span></td></tr>'
        for name, share in shown
    )
    rows = rows or "<tr><td>The score is constant: no feature matters.</td></tr>"
    caption = "Features that matter, with their shares"
    return f'<table class="isbor-table"><caption>{caption}</caption><tbody>{rows}</tbody></table>'


def _thresholds(found: Description) -> str:
    """Return the scores of each class, for readers of axes on which not all names and numbers have room."""
    ends = _numbers(found)
    rows = "".join(
        f'<tr><th scope="row" class="isbor-name">{escape(str(label))}</th><td>{low}</td><td>{high}</td></tr>'
        for label, (low, high) in zip(found.classes, pairwise(["", *ends, ""]), strict=True)
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Class", "Score from", "to"))
    return (
        "<details><summary>Classes and thresholds</summary>"
        f'<table class="isbor-table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>'
    )


def _numbers(found: Description) -> list[str]:
    """Return the thresholds with so many decimals that their gaps can be seen, at least two."""
    gaps = np.diff(found.thresholds)
    gaps = gaps[(gaps > 0) & np.isfinite(gaps)]
    smallest = gaps.min() if len(gaps) else abs(found.thresholds[0]) or 1.0
    decimals = int(np.clip(1 - np.floor(np.log10(smallest)), 2, 9)) if np.isfinite(smallest) else 2
    return [f"{threshold:.{decimals}f}".replace("-", "\N{MINUS SIGN}") for threshold in found.thresholds]
