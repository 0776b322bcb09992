"""Tables in the terminal, Markdown, CSV and LaTeX; the page of a report shows them in HTML."""

import csv
import io
import math

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from isbor.experiments.reporting.tables.table import (
    Entry,
    Table,
    mark_best,
    mean_and_deviation,
    number,
    seconds,
    to_csv,
    to_latex,
    to_markdown,
    to_rich,
)

RESULTS = Table(
    title="Errors & times",
    header=("task", "kind", "MAE", "s"),
    rows=(
        (Entry("a|b_c"), Entry("[bold]x[/bold]"), Entry("0.43 ± 0.02", "best"), Entry("-1.5")),
        (Entry("<i>50%</i>"), Entry(""), Entry("0.50 ± 0.10", "second"), Entry("–")),
    ),
    notes=("Mean ± deviation.", "Less is better."),
    n_text=2,
)


def test_markdown_is_aligned_and_marked():
    assert to_markdown(RESULTS).splitlines() == [
        r"## Errors \& times",
        "",
        r"| task         | kind             |             MAE |    s |",
        r"| ------------ | ---------------- | --------------: | ---: |",
        r"| a\|b_c       | \[bold]x\[/bold] | **0.43 ± 0.02** | -1.5 |",
        r"| \<i>50%\</i> |                  |   *0.50 ± 0.10* |    – |",
        "",
        "Mean ± deviation.",
        "",
        "Less is better.",
    ]


def test_latex_is_a_booktabs_table():
    assert to_latex(RESULTS).splitlines() == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{Errors \& times}",
        r"  \begin{tabular}{llrr}",
        r"    \toprule",
        r"    task & kind & MAE & s \\",
        r"    \midrule",
        r"    a$|$b\_c & {[}bold{]}x{[}/bold{]} & \textbf{0.43 $\pm$ 0.02} & $-$1.5 \\",
        r"    $<$i$>$50\%$<$/i$>$ &  & \emph{0.50 $\pm$ 0.10} & -- \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"  \par{\footnotesize Mean $\pm$ deviation.}",
        r"  \par{\footnotesize Less is better.}",
        r"\end{table}",
    ]


@given(st.lists(st.text(), min_size=2, max_size=2), st.text())
def test_any_text_survives_csv(header, text):
    table = Table("title", tuple(header), ((Entry(text), Entry(text, "best")),))
    assert list(csv.reader(io.StringIO(to_csv(table), newline=""))) == [header, [text, text]]


def test_the_terminal_shows_marks_as_styles_and_brackets_as_they_are():
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(to_rich(RESULTS))
    text = console.file.getvalue()
    assert "[bold]x[/bold]" in text
    assert "\x1b[1m0.43 ± 0.02\x1b[0m" in text
    assert "\x1b[3m0.50 ± 0.10\x1b[0m" in text
    assert "Errors & times" in text
    assert "Less is better." in text


def marks(values, texts=None, **kwargs):
    texts = [f"{value:.2f}" for value in values] if texts is None else texts
    return [entry.mark for entry in mark_best(values, texts, **kwargs)]


def test_the_best_and_the_second_are_marked():
    assert marks([0.3, 0.1, 0.2]) == ["", "best", "second"]
    assert marks([0.3, 0.1, 0.2], lowest=False) == ["best", "", "second"]
    # Values with the same text share a mark, whatever their deviations; after two best there is no second.
    assert marks([0.101, 0.104, 0.2], ["0.10 ± 0.02", "0.10 ± 0.01", "0.20 ± 0.01"]) == ["best", "best", ""]
    assert marks([0.1, 0.201, 0.199, 0.3]) == ["best", "second", "second", ""]
    assert mark_best([math.nan, 2.0], ["nan", "2"]) == [Entry("–"), Entry("2", "best")]


def test_numbers_as_text():
    assert mean_and_deviation([0.41, 0.43, 0.45], 2) == "0.43 ± 0.02"
    assert mean_and_deviation([0.4321], 3) == "0.432"
    assert mean_and_deviation([], 2) == mean_and_deviation([0.4, math.nan], 2) == "–"
    assert [number(1.23456, 3), number(-0.0001, 2), number(math.nan, 2)] == ["1.235", "0.00", "–"]
    durations = [0.0, 0.0012, 0.3456, 2.345678, 23.456, 234.56, 12345.6, math.nan]
    shown = ["<0.001", "0.001", "0.346", "2.35", "23.5", "235", "12346", "–"]
    assert [seconds(value) for value in durations] == shown
