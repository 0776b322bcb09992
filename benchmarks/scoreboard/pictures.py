"""Critical difference diagrams of the scoreboard, one for each error."""

from pathlib import Path

from benchmarks.scoreboard.tables import ERRORS
from isbor.experiments import Results
from isbor.experiments.reporting.figures.critical_difference import critical_difference_figure
from isbor.experiments.reporting.figures.style import rendered
from isbor.experiments.reporting.tables.difference_tables import friedman_of

__all__ = ["draw_ranks"]


def draw_ranks(results: Results, directory: Path) -> list[Path]:
    """Draw the diagrams that there are enough results for, and return their files."""
    titles = {model.name: model.title for model in results.experiment.models}
    drawn = []
    for head, quantity in ERRORS.items():
        found = friedman_of(results, quantity)
        if found is not None:
            path = directory / f"ranks-{head.lower().replace(' ', '-')}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rendered(critical_difference_figure(found, titles), "png"))
            drawn.append(path)
    return drawn
