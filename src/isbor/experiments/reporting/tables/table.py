"""Tables of results: one description, rendered for a terminal, Markdown, CSV, LaTeX and HTML."""

import csv
import html
import io
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import rich.table
from rich.box import SIMPLE_HEAD
from rich.text import Text

from isbor._core.types import FloatArray

__all__ = [
    "DASH",
    "Entry",
    "Mark",
    "Table",
    "mark_best",
    "mean_and_deviation",
    "number",
    "seconds",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_rich",
]

Mark: TypeAlias = Literal["", "best", "second"]

DASH = "–"  # no number
_DEVIATION = " ± "
_RICH_STYLE: dict[Mark, str] = {"": "", "best": "bold", "second": "italic"}
_MARKDOWN_MARK: dict[Mark, str] = {"": "", "best": "**", "second": "*"}
_LATEX_COMMAND: dict[Mark, str] = {"": "", "best": r"\textbf", "second": r"\emph"}
# An underscore inside a word needs no escape.
_MARKDOWN_SPECIAL = re.compile(r"[\\|*`<\[~&]|(?<!\w)_|_(?!\w)")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{special: f"\\{special}" for special in "&%$#_{}"},
        **{bracket: f"{{{bracket}}}" for bracket in "[]*"},  # after the end of a line they are its options
        **{relation: f"${relation}$" for relation in "<>|"},
        "±": r"$\pm$",
        "×": r"$\times$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "−": "$-$",
        "–": "--",
        "—": "---",
        "∞": r"$\infty$",
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """The text of a cell, and its mark: best or second best."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of entries: columns of text, aligned left, then columns of numbers, aligned right."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    n_text: int = 1


def to_rich(table: Table) -> rich.table.Table:
    """Return the table for a terminal: the best in bold, the second in italics."""
    shown = rich.table.Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=Text(table.title) if table.title else None,
        title_justify="left",
        caption=Text("\n".join(table.notes)) if table.notes else None,
        caption_justify="left",
    )
    for k, name in enumerate(table.header):
        shown.add_column(Text(name), justify="left" if k < table.n_text else "right")
    for row in table.rows:
        shown.add_row(*(Text(entry.text, style=_RICH_STYLE[entry.mark]) for entry in row))
    return shown


def to_markdown(table: Table) -> str:
    """Return a heading, the table and its notes: **best**, *second*."""
    lines = [[_markdown(name) for name in table.header]]
    for row in table.rows:
        lines.append([_around(_markdown(entry.text), _MARKDOWN_MARK[entry.mark]) for entry in row])
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def aligned(cells: Sequence[str]) -> str:
        return line(
            cell.ljust(width) if k < table.n_text else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )

    rule = line(
        "-" * width if k < table.n_text else "-" * (width - 1) + ":" for k, width in enumerate(widths)
    )
    title = [f"## {_markdown(table.title)}"] if table.title else []
    body = "\n".join([aligned(lines[0]), rule, *map(aligned, lines[1:])])
    return "\n\n".join([*title, body, *map(_markdown, table.notes)]) + "\n"


def to_csv(table: Table) -> str:
    """Return header and rows as comma-separated values, without marks, title and notes."""
    lines = [list(table.header), *([entry.text for entry in row] for row in table.rows)]
    # Some versions of Python do not quote a carriage return.
    has_return = any("\r" in text for line in lines for text in line)
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n", quoting=quoting).writerows(lines)
    return file.getvalue()


def to_latex(table: Table) -> str:
    r"""Return a `table` environment with a caption; it needs ``\usepackage{booktabs}``."""
    lines = [[_latex(name) for name in table.header]]
    for row in table.rows:
        lines.append([_latex_entry(entry, is_number=k >= table.n_text) for k, entry in enumerate(row)])
    header, *body = [rf"    {' & '.join(cells)} \\" for cells in lines]
    columns = "l" * table.n_text + "r" * (len(table.header) - table.n_text)
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            *([rf"  \caption{{{_latex(table.title)}}}"] if table.title else []),
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            header,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            *(rf"  \par{{\footnotesize {_latex(note)}}}" for note in table.notes),
            r"\end{table}",
            "",
        ]
    )


def to_html(table: Table) -> str:
    """Return a `table` element; style it by the classes `number`, `best` and `second`, and `tfoot`."""

    def cell(entry: Entry, k: int, scope: str = "") -> str:
        tag = "th" if scope else "td"
        attributes = {
            "scope": scope,
            "class": f"{'number' if k >= table.n_text else ''} {entry.mark}".strip(),
        }
        shown = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
        return f"<{tag}{shown}>{html.escape(entry.text)}</{tag}>"

    def row(entries: Sequence[Entry]) -> str:
        names = "row" if table.n_text else ""
        cells = [cell(entry, k, scope="" if k else names) for k, entry in enumerate(entries)]
        return f"<tr>{''.join(cells)}</tr>"

    header = "".join(cell(Entry(name), k, scope="col") for k, name in enumerate(table.header))
    notes = [f'<tr><td colspan="{len(table.header)}">{html.escape(note)}</td></tr>' for note in table.notes]
    return "\n".join(
        [
            "<table>",
            *([f"<caption>{html.escape(table.title)}</caption>"] if table.title else []),
            f"<thead>\n<tr>{header}</tr>\n</thead>",
            "<tbody>",
            *map(row, table.rows),
            "</tbody>",
            *(["<tfoot>", *notes, "</tfoot>"] if notes else []),
            "</table>",
            "",
        ]
    )


def mark_best(values: Sequence[float], texts: Sequence[str], *, lowest: bool = True) -> list[Entry]:
    """Return the entries of a column, best and second best marked; a dash where a value is NaN.

    Values with the same text share a mark, whatever their standard deviations. If two or more are best, there
    is no second.
    """
    shown = [text.partition(_DEVIATION)[0] for text in texts]
    finished = [k for k, value in enumerate(values) if not math.isnan(value)]
    order = sorted(finished, key=lambda k: values[k] if lowest else -values[k])
    marks: dict[str, Mark] = {}
    if order:
        marks[shown[order[0]]] = "best"
        others = [k for k in order if shown[k] != shown[order[0]]]
        if others and len(others) == len(order) - 1:
            marks[shown[others[0]]] = "second"
    return [
        Entry(DASH) if math.isnan(value) else Entry(text, marks.get(what, ""))
        for value, text, what in zip(values, texts, shown, strict=True)
    ]


def mean_and_deviation(values: Sequence[float] | FloatArray, digits: int) -> str:
    """Return mean ± standard deviation; the mean alone for one value, a dash for none."""
    if not len(values):
        return DASH
    mean = number(statistics.fmean(values), digits)
    if len(values) == 1 or mean == DASH:
        return mean
    return f"{mean}{_DEVIATION}{number(statistics.stdev(values), digits)}"


def number(value: float, digits: int) -> str:
    """Return the value with this many decimals, a dash for NaN."""
    return DASH if math.isnan(value) else f"{value:z.{digits}f}"


def seconds(value: float) -> str:
    """Return a duration with about three digits, at most milliseconds; a dash for NaN."""
    if value < 0.0005:
        return "<0.001"
    return number(value, 3 if value < 1.0 else 2 if value < 10.0 else 1 if value < 100.0 else 0)


def _around(text: str, mark: str) -> str:
    return f"{mark}{text}{mark}" if text else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\g<0>", _one_line(text))


def _latex(text: str) -> str:
    return _one_line(text).translate(_LATEX)


def _latex_entry(entry: Entry, *, is_number: bool) -> str:
    text = entry.text
    if is_number and text.startswith("-") and len(text) > 1:
        text = f"−{text[1:]}"  # a minus sign
    return f"{_LATEX_COMMAND[entry.mark]}{{{_latex(text)}}}" if entry.mark else _latex(text)
