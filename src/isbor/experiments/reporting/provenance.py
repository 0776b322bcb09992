"""What made the records: code, versions, machines, threads and dates."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from isbor.experiments.running.records import UNKNOWN_COMMIT, Record

__all__ = ["dates", "provenance"]


def provenance(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return what made the records, as pairs of a heading and a text.

    Where records differ, each text ends with the number of its records.
    """
    parts: Mapping[str, Callable[[Record], str]] = {"code": _code, "versions": _versions, "machine": _machine}
    lines = []
    for heading, text_of in parts.items():
        counts = Counter(map(text_of, records))
        for text, count in counts.most_common():
            lines.append((heading, f"{text} ({count} records)" if len(counts) > 1 else text))
    return lines


def dates(records: Iterable[Record]) -> str:
    """Return when the records were made."""
    days = sorted({record.finished[:10] for record in records if record.finished})
    if not days:
        return ""
    return f"Computed on {days[0]}." if len(days) == 1 else f"Computed from {days[0]} to {days[-1]}."


def _code(record: Record) -> str:
    if record.commit is None:
        commit = "not from a checkout"
    else:
        commit = "unknown commit" if record.commit == UNKNOWN_COMMIT else f"commit {record.commit}"
    return f"isbor {record.versions.get('isbor', 'of unknown version')}, {commit}"


def _versions(record: Record) -> str:
    others = {name: value for name, value in record.versions.items() if name != "isbor"}
    return _listed(others) or "unknown"


def _machine(record: Record) -> str:
    threads = "" if record.threads is None else f", {record.threads} thread{'s' * (record.threads > 1)}"
    return f"{_listed(record.machine) or 'unknown'}{threads}"


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
