"""What a result depends on besides the data: versions and the machine."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["machine_facts", "package_versions"]

_PACKAGES = ("isbor", "numpy", "scipy", "scikit-learn", "numba")


def package_versions(*others: str) -> dict[str, str]:
    """Return the versions of Python and of the packages that compute, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in (*_PACKAGES, *others):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine_facts() -> dict[str, str]:
    """Return what seconds depend on."""
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_model() -> str:
    """Return the processor's name; Linux keeps it in a file, others tell it to Python."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
