"""An earlier commit in a virtual environment of its own, with the packages of the present one."""

import io
import subprocess
import sys
import tarfile
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["commit_of", "installed"]

_ROOT = Path(__file__).parents[2]


def commit_of(revision: str) -> str:
    """Return the full name of a commit."""
    words = ["git", "-C", str(_ROOT), "rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}"]
    found = subprocess.run(words, capture_output=True, text=True)
    if found.returncode:
        raise ValueError(
            f"There is no commit {revision!r} here. A branch, tag or commit of this repository is needed; "
            "fetch it first if the history is incomplete."
        )
    return found.stdout.strip()


def installed(commit: str, folder: Path) -> Path:
    """Return the interpreter of a commit's environment, which is made if it is missing or out of date."""
    home = folder / commit[:10]
    python = home / "bin" / "python"
    done = home / "constraints.txt"  # written last
    constraints = "".join(f"{name}=={version}\n" for name, version in _present_packages().items())
    if done.is_file() and done.read_text() == constraints:
        return python
    archive = subprocess.run(["git", "-C", str(_ROOT), "archive", commit], stdout=subprocess.PIPE, check=True)
    with TemporaryDirectory() as name:
        source, wanted = Path(name, "source"), Path(name, "constraints.txt")
        tarfile.open(fileobj=io.BytesIO(archive.stdout)).extractall(source, filter="data")
        wanted.write_text(constraints)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [python, "-I", "-m", "pip", "install", "--quiet", "--constraint", wanted]
        subprocess.run([*pip, f"{source}[experiments]"], check=True)
    done.write_text(constraints)
    return python


def _present_packages() -> dict[str, str]:
    found = {package.metadata["Name"]: package.version for package in distributions()}
    return {name: found[name] for name in sorted(found) if name != "isbor"}
