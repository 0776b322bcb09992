"""The report as one HTML page: tables, figures, models, machine and versions, and how to repeat it.

Figures and style are embedded, so the page needs no other file and no network.
"""

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from isbor.experiments.description.experiment import Experiment
from isbor.experiments.description.models import Model
from isbor.experiments.reporting.figures.style import rendered
from isbor.experiments.reporting.provenance import dates, provenance
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.table import Entry, Table, to_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["report_page"]


def report_page(
    results: Results,
    tables: Mapping[str, Table],
    figures: "Mapping[str, tuple[Figure, str]]",
    command: str,
) -> str:
    """Return the page as HTML."""
    experiment, counts = results.experiment, results.counts
    total = len(experiment.jobs())
    done = [f"{counts['ok']} of {total} jobs finished"]
    done += [f"{counts['timeout']} timed out"] if counts["timeout"] else []
    done += [f"{counts['failed']} failed"] if counts["failed"] else []
    done += [f"{counts['missing']} were not run"] if counts["missing"] else []
    shown = "".join(f'<div class="wide">{to_html(table)}</div>' for table in tables.values())
    pictures = "".join(
        f'<figure><img alt="{html.escape(about)}" src="{_data_uri(figure)}">'
        f"<figcaption>{html.escape(about)}</figcaption></figure>"
        for figure, about in figures.values()
    )
    made_by = "".join(
        f"<dt>{heading}</dt><dd>{html.escape(text)}</dd>" for heading, text in provenance(results.all_records)
    )
    style = resources.files("isbor.experiments.reporting").joinpath("page.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(experiment.title)}</title>
<style>{style}</style>
</head>
<body>
<h1>{html.escape(experiment.title)}</h1>
<p class="quiet">{html.escape(", ".join(done))}. {html.escape(dates(results.all_records))}</p>
<nav><a href="#tables">Tables</a><a href="#figures">Figures</a><a href="#models">Models</a>
<a href="#machine">Code and machine</a><a href="#repeat">How to repeat</a></nav>
<p>{html.escape(experiment.about)}</p>
<h2 id="tables">Tables</h2>
{shown}
<h2 id="figures">Figures</h2>
{pictures}
<h2 id="models">Models</h2>
<p>{html.escape(experiment.how_tuned())}</p>
<div class="wide">{_models_table(experiment.models)}</div>
<h2 id="machine">What made the records</h2>
<dl>{made_by}</dl>
<h2 id="repeat">How to repeat</h2>
<pre>{html.escape(command)}</pre>
<p>{_conditions(results)}</p>
</body>
</html>
"""


def _conditions(results: Results) -> str:
    experiment = results.experiment
    limits = Counter(record.limits_in_words for record in results.all_records if record.limits)
    allowed = " or ".join(
        f"{text} ({count} jobs)" if len(limits) > 1 else text for text, count in limits.most_common()
    )
    return (
        "Each job (one model on one split) ran in its own process on one thread"
        f"{f', with at most {allowed}, search included' if limits else ''}. {_how_searched(experiment)}The "
        f"seed is {experiment.seed}. All records are in <code>records.csv</code> beside this page; tables "
        "and figures are in <code>tables/</code> and <code>figures/</code>."
    )


def _how_searched(experiment: Experiment) -> str:
    if not any(model.grid for model in experiment.models):
        return ""
    search = experiment.search
    rows = "all" if search.rows_at_most is None else f"at most {search.rows_at_most:,}"
    race = (
        f"; grid points more than {search.give_up:g} standard errors behind the best after a fold are dropped"
        if search.scoring == "mae" and np.isfinite(search.give_up)
        else ""
    )
    return (
        f"Grid search: {search.folds}-fold cross-validation of “{search.scoring}” on {rows} "
        f"training rows{race}. "
    )


def _data_uri(figure: "Figure") -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(rendered(figure, 'svg')).decode()}"


def _models_table(models: Sequence[Model]) -> str:
    rows = [(model.title, model.estimator, _listed(model.parameters), _searched(model)) for model in models]
    header = ("model", "estimator", "parameters", "tuning")
    return to_html(Table("", header, tuple(tuple(map(Entry, row)) for row in rows), n_text=len(header)))


def _searched(model: Model) -> str:
    """Return the grid and how it is searched, or what else is tuned."""
    if not model.grid:
        if model.tuning:
            return f"{model.tuning}, within the fit"
        return "none: parameters as given, otherwise defaults" if model.parameters else "none: defaults"
    grid = _listed(model.grid)
    by = f" by {model.searched_by}" if model.searched_by else ""
    given = f" with {_listed(model.search_parameters)}" if model.search_parameters else ""
    return f"{grid}{f' (searched{by}{given})' if by or given else ''}"


def _listed(parameters: Mapping[str, object]) -> str:
    def text(value: object) -> str:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return "{" + ", ".join(map(text, value)) + "}"
        return f"{value:g}" if isinstance(value, float) else str(value)

    return "; ".join(f"{name} = {text(value)}" for name, value in parameters.items()) or "–"
