"""The files of a report: tables, figures, records, and one page with everything."""

from pathlib import Path

from isbor._core.whole_files import write_whole
from isbor.experiments.reporting.figures.study import FIGURE_NAMES, study_figures
from isbor.experiments.reporting.figures.style import rendered
from isbor.experiments.reporting.page import report_page
from isbor.experiments.reporting.results import Results
from isbor.experiments.reporting.tables.study import TABLE_NAMES, study_tables
from isbor.experiments.reporting.tables.table import to_csv, to_latex, to_markdown
from isbor.experiments.running.record_files import record_lines, record_table

__all__ = ["write_report"]

_TABLES = {".md": to_markdown, ".csv": to_csv, ".tex": to_latex}


def write_report(results: Results, directory: Path, *, command: str) -> Path:
    """Write tables, figures, records and the page; return the path of the page.

    Parameters
    ----------
    results : Results
        The results to report.
    directory : Path
        Receives ``report.html``, ``records.csv``, ``records.jsonl``, ``tables/`` and ``figures/``. Tables and
        figures of an earlier report that this one does not have are removed.
    command : str
        The command to repeat it, shown on the page.

    Examples
    --------
    >>> from isbor.experiments import Results, load_study, write_report
    >>> results = Results.of(load_study("synthetic", quick=True), records)  # doctest: +SKIP
    >>> write_report(results, Path("report"), command="python mine.py")  # doctest: +SKIP
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
        for ending in ("png", "svg"):
            path = directory / "figures" / f"{name}.{ending}"
            if name in figures:
                write_whole(path, rendered(figures[name][0], ending))
            else:
                path.unlink(missing_ok=True)
    _write(directory / "records.csv", record_table(results.all_records))
    _write(directory / "records.jsonl", record_lines(results.by_key))
    page = directory / "report.html"
    _write(page, report_page(results, tables, figures, command))
    return page


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
