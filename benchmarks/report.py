"""What the benchmarks print: Markdown tables, targets met or not, facts about the machine."""

import sys
from collections.abc import Iterable, Sequence

from threadpoolctl import threadpool_info

from isbor.experiments.reporting.tables.table import Entry, Table, number, seconds, to_markdown
from isbor.experiments.running.machine import machine_facts, package_versions

__all__ = ["number", "print_machine", "print_table", "print_target", "progress", "seconds"]


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> None:
    """Print a Markdown table: first `n_text` columns of text, then columns of numbers."""
    entries = tuple(tuple(map(Entry, row)) for row in rows)
    print(to_markdown(Table(title, tuple(header), entries, n_text=n_text)))


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
    print(", ".join(f"{name} {version}" for name, version in package_versions("skordinal").items()))
    print(f"BLAS: {', '.join(sorted(blas)) or 'unknown'}\n")


def progress(text: str) -> None:
    """Write a line to standard error, where it does not disturb the tables."""
    sys.stderr.write(f"{text}\n")
