"""Results as files: tables, figures, all records, and one page that holds everything."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from isbor.experiments.contents import TABLE_NAMES, study_tables
from isbor.experiments.drawing import save_figure, write_whole
from isbor.experiments.illustrations import FIGURE_NAMES, study_figures
from isbor.experiments.page import report_page
from isbor.experiments.records import Record
from isbor.experiments.results import Results
from isbor.experiments.tables import to_csv, to_latex, to_markdown

__all__ = ["write_report"]

_TABLES = {".md": to_markdown, ".csv": to_csv, ".tex": to_latex}


def write_report(results: Results, directory: Path, *, command: str) -> Path:
    """Write tables, figures, records and the page; return the page.

    Parameters
    ----------
    results : Results
        What to report.
    directory : Path
        Where to: ``report.html``, ``records.csv``, ``tables/`` and ``figures/``. Files are replaced whole;
        those of an earlier report that have no place in this one are removed.
    command : str
        What to type to get the same, for the page.
    """
    tables = study_tables(results)
    figures = study_figures(results)
    for part in ("tables", "figures"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    for name in TABLE_NAMES:
        for ending, render in _TABLES.items():
            path = directory / "tables" / f"{name}{ending}"
            if name in tables:
                _write(path, render(tables[name]))
            else:
                path.unlink(missing_ok=True)
    for name in FIGURE_NAMES:
        if name in figures:
            save_figure(figures[name][0], directory / "figures" / name)
        else:
            for ending in (".png", ".svg"):
                (directory / "figures" / f"{name}{ending}").unlink(missing_ok=True)
    _write(directory / "records.csv", _records_csv(results.all_records))
    page = directory / "report.html"
    _write(page, report_page(results, tables, figures, command))
    return page


def _records_csv(records: Iterable[Record]) -> str:
    """Return all records, one a line."""
    records = list(records)
    metrics = sorted({name for record in records for name in record.metrics})
    times = ("search", "fit", "predict", "total")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["task", "model", "split", "status", "reason", "n_train", "n_test", *metrics, "vectors"]
        + [f"{name}_seconds" for name in times]
        + ["peak_megabytes", "parameters", "finished"]
    )
    for record in records:
        parameters = "; ".join(f"{name}={value}" for name, value in record.parameters.items())
        writer.writerow(
            [record.task, record.model, record.split, record.status, record.reason]
            + [record.n_train or "", record.n_test or ""]
            + [record.metrics.get(name, "") for name in metrics]
            + ["" if record.vectors is None else record.vectors]
            + [f"{record.seconds[name]:.4f}" if name in record.seconds else "" for name in times]
            + [record.peak_memory, parameters, record.finished]
        )
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
