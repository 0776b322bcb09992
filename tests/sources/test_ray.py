"""The recipe for Ray in docs/clusters.md, if Ray is installed; it is no dependency."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isbor import ISBOR
from isbor.data import large_tables
from isbor.data.blocks import RemoteSource

ray = pytest.importorskip("ray")
data = pytest.importorskip("ray.data")

DOCUMENT = Path(__file__).parents[2] / "docs" / "clusters.md"


@pytest.mark.filterwarnings("default")  # Ray's own
def test_the_recipe_for_ray(monkeypatch):
    monkeypatch.setattr(large_tables, "_SAMPLE_ROWS", 500)
    code = re.search(r"### Ray\n\n```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    names = {}
    exec(compile(code, str(DOCUMENT), "exec"), names)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["a", "b"])
    frame["stars"] = 1 + np.digitize(frame["a"] + 0.5 * rng.normal(size=len(frame)), [-1.0, 0.5])
    expected = ISBOR(effort="fast").fit(frame[["a", "b"]], frame["stars"])
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        table = names["RayTable"](data.from_pandas(frame).repartition(5), "stars")
        assert isinstance(table, RemoteSource)
        assert sum(len(block.y) for block in table.blocks()) == len(frame)
        fitted = ISBOR(effort="fast").fit(table)
    finally:
        ray.shutdown()
    X = frame[["a", "b"]]
    np.testing.assert_allclose(fitted.thresholds_, expected.thresholds_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-6)
