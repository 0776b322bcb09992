"""Sizes of model files, and what saving and loading takes: ``python -m benchmarks.model_files``."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from isbor import GPOR, ISBOR, ISVOR, SVOR, load

# Estimators and numbers of rows.
MODELS = [(ISBOR(), 500), (ISBOR(), 20_000), (SVOR(), 2_000), (ISVOR(), 500), (GPOR(), 500)]


def noisy_rows(n):
    rng = np.random.default_rng(100)
    X = rng.normal(size=(n, 8))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.digitize(score, [-1.0, 0.0, 1.0])


def main():
    """Fit each model, save and load it, and print the table."""
    print("| model | rows | file | with training rows | seconds to save | to load |")
    print("|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.isbor"
        for model, n in MODELS:
            model.fit(*noisy_rows(n))
            sizes = []
            for training_rows in (True, False):
                begun = time.process_time()
                model.save(path, training_rows=training_rows)
                saved = time.process_time()
                load(path)
                loaded = time.process_time()
                sizes.append(f"{path.stat().st_size / 1000:,.0f} kB")
            name = f"{type(model).__name__}()"
            print(
                f"| {name} | {n:,} | {sizes[1]} | {sizes[0]} | {saved - begun:.2f} | {loaded - saved:.2f} |"
            )


if __name__ == "__main__":
    main()
