"""What the benchmarks print: Markdown tables, targets met or not, facts about the machine."""

import sys
from collections.abc import Iterable, Sequence

from threadpoolctl import threadpool_info

from isbor.experiments.running.machine import machine_facts, package_versions

__all__ = ["number", "print_machine", "print_table", "print_target", "progress", "seconds"]


def number(value: float, digits: int = 4) -> str:
    """Return the value with that many decimals, a dash for NaN."""
    return "–" if value != value else f"{value:.{digits}f}"


def seconds(value: float) -> str:
    """Return a duration with as many digits as a measurement deserves, a dash for NaN."""
    return f"{value:.2g}" if value < 1 else number(value, 1 if value >= 10 else 2)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> None:
    """Print a Markdown table: first `n_text` columns of text, then columns of numbers."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def text(line: Sequence[str]) -> str:
        cells = [cell.ljust(width) for cell, width in zip(line[:n_text], widths[:n_text], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(line[n_text:], widths[n_text:], strict=True)]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * width for width in widths[:n_text]]
    rule += ["-" * (width - 1) + ":" for width in widths[n_text:]]
    print(f"## {title}\n", *(text(line) for line in [lines[0], rule, *lines[1:]]), "", sep="\n")


def print_target(what: str, value: float, limit: float, digits: int) -> None:
    """Print whether a value is at most its limit."""
    outcome = "met" if value <= limit else "not met"
    print(f"- {what}: {number(value, digits)}, at most {number(limit, digits)}: {outcome}")


def print_machine() -> None:
    """Print what the seconds depend on."""
    blas = {
        f"{pool['internal_api']} {pool['version']} ({pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    machine = machine_facts()
    print(f"\nCPU: {machine['cpu']}, {machine['cores']} cores; {machine['system']}")
    print(", ".join(f"{name} {number}" for name, number in package_versions("skordinal").items()))
    print(f"BLAS: {', '.join(sorted(blas)) or 'unknown'}\n")


def progress(text: str) -> None:
    """Write a line to standard error, where it does not disturb the tables."""
    sys.stderr.write(f"{text}\n")
