"""What a result depends on besides the data: code, versions, machine and threads."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

import isbor

__all__ = ["machine_facts", "package_versions", "source_commit", "thread_count"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def package_versions(*others: str) -> dict[str, str]:
    """Return the versions of Python and of the packages that compute, as far as they are installed."""
    found = {"python": platform.python_version(), "isbor": isbor.__version__}
    for name in (*_PACKAGES, *others):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def source_commit() -> str | None:
    """Return the git commit of isbor, with "-dirty" if its source differs from it.

    None if isbor does not run from a checkout.
    """
    source = Path(isbor.__file__).parent
    if _git(source, "ls-files", "__init__.py") != "__init__.py":
        return None  # installed below another repository, perhaps
    commit = _git(source, "rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and _git(source, "status", "--porcelain", ".") else commit


@cache
def machine_facts() -> dict[str, str]:
    """Return processor, cores and system."""
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }


def thread_count() -> int:
    """Return how many threads linear algebra may use in this process."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


def _git(directory: Path, *words: str) -> str | None:
    """Return what git prints; None if there is no git or no repository."""
    try:
        found = subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _cpu_model() -> str:
    """Return the name of the processor; on Linux only a file has it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
