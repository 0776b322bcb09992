"""The recipes in docs/clusters.md, where Ray and Spark are installed; they are no dependencies."""

import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isbor import ISBOR
from isbor.data import large_tables
from isbor.data.blocks import RemoteSource

DOCUMENT = Path(__file__).parents[2] / "docs" / "clusters.md"


@contextmanager
def ray_table(recipe, frame):
    import ray
    from ray import data

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        yield recipe["RayTable"](data.from_pandas(frame).repartition(5), "stars")
    finally:
        ray.shutdown()


@contextmanager
def spark_table(recipe, frame):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        yield recipe["SparkTable"](spark.createDataFrame(frame).repartition(5), "stars")
    finally:
        spark.stop()


@pytest.mark.filterwarnings("default")  # theirs
@pytest.mark.parametrize(
    ("name", "module", "opened"), [("Ray", "ray.data", ray_table), ("Spark", "pyspark", spark_table)]
)
def test_a_recipe_gives_the_model_of_the_rows_in_memory(name, module, opened, monkeypatch):
    pytest.importorskip(module)
    if name == "Spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setattr(large_tables, "_SAMPLE_ROWS", 500)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    code = re.search(rf"### {name}\n\n```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["a", "b"])
    frame["stars"] = 1 + np.digitize(frame["a"] + 0.5 * rng.normal(size=len(frame)), [-1.0, 0.5])
    recipe = {}
    exec(compile(code, str(DOCUMENT), "exec"), recipe)
    with opened(recipe, frame) as table:
        assert isinstance(table, RemoteSource)
        assert sum(len(block.y) for block in table.blocks()) == len(frame)
        fitted = ISBOR(effort="fast").fit(table)
    X = frame[["a", "b"]]
    expected = ISBOR(effort="fast").fit(X, frame["stars"])
    np.testing.assert_allclose(fitted.thresholds_, expected.thresholds_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-6)
