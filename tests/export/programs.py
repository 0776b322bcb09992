"""Node.js and Chromium, if they are installed, run on what is exported."""

import json
import math
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from isbor.export import to_json

READER = str(resources.files("isbor.export").joinpath("model.js"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="There is no Node.js (`node`) to run the JavaScript reader."
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium (`chromium`) to show the page."
)


def run_node(code: str, given: object) -> object:
    """Return what a function body in JavaScript returns; `isborModel` is the reader, `given` its argument."""
    program = f"""
        const isborModel = require({json.dumps(READER)});
        const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify((() => {{ {code} }})()));"""
    done = subprocess.run(["node", "-e", program], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_javascript(model, folder: Path, rows: list[dict], **options) -> list[dict]:
    """Return what the JavaScript reader says of some rows, given the file of a model."""
    path = folder / "model.json"
    to_json(model, path, **options)
    code = """
        const text = require("fs").readFileSync(given.path, "utf8");
        const model = isborModel.read(JSON.parse(text));
        return given.rows.map((row) =>
            ({...model.predict(row), again: model.score(row), bands: model.bands(row)}));"""
    return run_node(code, {"path": str(path), "rows": rows})


def rows_of(frame) -> list[dict]:
    """Return the rows of a data frame as plain objects, with None for missing cells."""

    def plain(value):
        value = value.item() if hasattr(value, "item") else value
        return None if isinstance(value, float) and math.isnan(value) else value

    return [{name: plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def shown_by_chromium(page: Path, folder: Path, *, address: str = "") -> str:
    """Return the document of a page after its scripts ran."""
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=20000 --dump-dom"
    )
    done = subprocess.run(
        [CHROMIUM, *flags.split(), f"--user-data-dir={folder}", f"{page.as_uri()}{address}"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
