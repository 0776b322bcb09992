"""The page in a real browser: what it shows is what Python predicts."""

import html
import json
import re
from itertools import permutations
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from isbor import ISBOR, KDLOR
from isbor.export import to_html
from tests.export.programs import needs_chromium, shown_by_chromium

NAMES = {"age": 'age </script><script>document.title="broken"</script>', "colour": "Größe\u2028 \"'&amp;☂"}
CATEGORIES = {"red": '</script><img src="x" onerror="document.title=1">', "green": "<!--", "blue": "bläu'\""}
GRADES = ["<b>poor</b>", "fair", "</script>good"]

# Runs in the page: sets controls as a user does, and notes what is shown after each step.
DRIVER = """
<script>
(async () => {
  const settled = () => new Promise((done) => setTimeout(done, 300));
  const notes = [];
  const note = async () => {
    await settled();
    const { probabilities, bands } = document.getElementById("result").dataset;
    notes.push({
      probabilities: JSON.parse(probabilities),
      bands: bands ? JSON.parse(bands) : null,
      label: document.getElementById("label").textContent,
      changes: [...document.querySelectorAll("#changes tbody tr")].map((line) =>
        [line.cells[0].textContent, line.cells[2].textContent]),
      failure: document.getElementById("failure").textContent,
    });
  };
  const control = (name) =>
    [...document.querySelectorAll(".feature")].find((box) => box.querySelector("label").textContent === name);
  const change = (input, value) => {
    if (input.type === "checkbox") input.checked = value; else input.value = value;
    input.dispatchEvent(new Event(input.type === "range" || input.type === "number" ? "input" : "change"));
  };
  await note();
  for (const step of STEPS) {
    if (step.click) document.getElementById(step.click).click();
    else change(control(step.name).querySelector(step.input), step.value);
    await note();
  }
  const spoken = (await settled(), await settled(), document.getElementById("spoken").textContent);
  const unlabelled = [...document.querySelectorAll("input, select")].filter((input) =>
    !(input.labels.length || input.getAttribute("aria-label")));
  const report = { notes, spoken, title: document.title, images: document.images.length,
    unlabelled: unlabelled.length, loaded: performance.getEntriesByType("resource").length };
  const text = document.createElement("pre");
  text.id = "report";
  text.textContent = JSON.stringify(report);
  document.body.append(text);
})();
</script>
"""


@pytest.fixture(scope="module")
def table():
    """Rows whose names and categories would break a careless page."""
    rng = np.random.default_rng(0)
    n = 150
    age = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(20, 60, n))
    colour = rng.choice([*CATEGORIES.values()], n)
    f = np.where(np.isnan(age), 1.0, (age - 40) / 10) + (colour == CATEGORIES["red"])
    frame = pd.DataFrame({NAMES["age"]: age, NAMES["colour"]: colour, "income": rng.normal(size=n)})
    f = f + frame["income"]
    return frame, np.array(GRADES)[np.digitize(f + 0.5 * rng.normal(size=n), [0.0, 1.0])]


def run_page(page, folder, steps):
    """Return what the page shows at first, and after each step."""
    driven = folder / "driven.html"
    driver = DRIVER.replace("STEPS", json.dumps(steps).replace("<", "\\u003c"))
    driven.write_text(page.read_text("utf-8") + driver, "utf-8")
    shown = shown_by_chromium(driven, folder / "profile")
    return json.loads(html.unescape(re.search(r'<pre id="report">(.*?)</pre>', shown, re.DOTALL)[1]))


def typical_row(frame):
    row = {name: frame[name].quantile(0.5, interpolation="lower") for name in (NAMES["age"], "income")}
    return row | {NAMES["colour"]: frame[NAMES["colour"]].mode()[0]}


def shapley_values(model, frame, start, row):
    """Mean changes of the score over all orders in which the features of one row replace those of another."""
    names = [name for name in frame if row[name] != start[name]]
    total = dict.fromkeys(names, 0.0)
    orders = list(permutations(names))
    for order in orders:
        at = dict(start)
        for name in order:
            before = model.latent(pd.DataFrame([at])[list(frame)])[0]
            at[name] = row[name]
            after = model.latent(pd.DataFrame([at])[list(frame)])[0]
            total[name] += (after - before) / len(orders)
    return total


@needs_chromium
def test_what_the_page_shows_is_what_python_predicts(table, tmp_path):
    frame, y = table
    model = ISBOR(basis="rbf", classes=GRADES).fit(frame, y)
    to_html(model, tmp_path / "page.html", title="<i>Grades</i> & more")
    number, text = 'input[type="number"]', "select"
    steps = [
        {"name": "income", "input": 'input[type="range"]', "value": "0.75"},
        {"name": NAMES["colour"], "input": text, "value": CATEGORIES["red"]},
        {"name": NAMES["age"], "input": number, "value": "75.5"},
        {"click": "keep"},
        {"name": NAMES["age"], "input": 'input[type="checkbox"]', "value": True},
        {"name": NAMES["colour"], "input": text, "value": "(another category)"},
        {"click": "reset"},
    ]
    report = run_page(tmp_path / "page.html", tmp_path, steps)
    start = typical_row(frame)
    rows = [start]
    rows.append(rows[-1] | {"income": 0.75})
    rows.append(rows[-1] | {NAMES["colour"]: CATEGORIES["red"]})
    rows.append(rows[-1] | {NAMES["age"]: 75.5})
    rows.append(rows[-1])
    rows.append(rows[-1] | {NAMES["age"]: np.nan})
    rows.append(rows[-1] | {NAMES["colour"]: "unseen"})
    rows.append(start)
    X = pd.DataFrame(rows)[list(frame)]
    # A slider has steps.
    found = np.array([note["probabilities"] for note in report["notes"]])
    step = (frame["income"].max() - frame["income"].min()) / 500
    X["income"] = X["income"].where(X["income"] != 0.75, nearest_step(frame["income"].min(), step, 0.75))
    assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-6)
    lower, upper = model.predict_proba_interval(X)
    assert_allclose([note["bands"]["lower"] for note in report["notes"]], lower, rtol=0, atol=1e-6)
    assert_allclose([note["bands"]["upper"] for note in report["notes"]], upper, rtol=0, atol=1e-6)
    assert [note["label"] for note in report["notes"]] == model.predict(X).tolist()
    assert {note["failure"] for note in report["notes"]} == {""}
    shown = {name: float(value.replace("−", "-")) for name, value in report["notes"][3]["changes"]}
    assert_allclose(*same_order(shown, shapley_values(model, frame, start, X.iloc[3])), rtol=0, atol=0.006)
    assert [len(note["changes"]) for note in report["notes"]] == [0, 1, 2, 3, 0, 1, 2, 0]
    assert report["title"] == "<i>Grades</i> & more"
    assert report["images"] == report["unlabelled"] == report["loaded"] == 0
    label = model.predict(X.tail(1))[0]
    assert report["spoken"].startswith(f"Predicted: {label}. {GRADES[0]} ")


def nearest_step(low, step, value):
    return low + step * np.round((value - low) / step)


def same_order(one, other):
    assert one.keys() == other.keys()
    return [one[name] for name in one], [other[name] for name in one]


@needs_chromium
def test_a_row_in_the_address(table, tmp_path):
    frame, y = table
    model = KDLOR(classes=GRADES).fit(frame, y)
    to_html(model, tmp_path / "page.html")
    row = {"income": -1.25, NAMES["age"]: None, NAMES["colour"]: CATEGORIES["blue"]}
    shown = shown_by_chromium(
        tmp_path / "page.html", tmp_path / "profile", address=f"#{quote(json.dumps(row))}"
    )
    probabilities = json.loads(re.search(r'data-probabilities="(.*?)"', shown)[1])
    expected = model.predict_proba(pd.DataFrame([row])[list(frame)].astype({NAMES["age"]: float}))
    assert_allclose([probabilities], expected, rtol=0, atol=1e-6)


def test_the_page_needs_nothing_else(table, tmp_path):
    frame, y = table
    to_html(KDLOR(classes=GRADES).fit(frame, y), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert set(re.findall(r'(?:src|href)="([^"]*)"', page)) == {"data:,", "#features"}
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count("<script") == page.count("</script>") == 3
    assert "{{" not in page.replace("{{}}", "")
