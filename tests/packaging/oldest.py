"""Print pip constraints: the oldest version that pyproject.toml promises, of all that it names."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(*extras: str) -> dict[str, str]:
    """Return the packages that the project needs, with some extras, and their oldest versions."""
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    oldest = {}
    for entry in listed:
        if entry.startswith(f"{PROJECT['name']}["):  # the packages of other extras
            oldest |= requirements(*re.findall(r"\w+", entry)[1:])
        else:
            name, version = entry.split(">=")
            oldest[name.partition("[")[0]] = version  # constraints have no extras
    return oldest


if __name__ == "__main__":
    for name, version in requirements("bench", "test").items():
        print(f"{name}=={version}")
