"""Five more public sets, read from the directory ``more`` in the one that ``ISBOR_DATA`` names.

``stock`` has a continuous target, cut by rank into five classes; the others have classes: ``automobile``
(risk), ``car`` (how acceptable), ``winequality_red`` (quality; some rows occur twice, so that a part of a
random test set stands in the training set) and ``diamonds`` (cut). A file has the form that `isbor.datasets`
describes.
"""

import os
from pathlib import Path

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.datasets import cut_by_rank
from isbor.datasets.files import read_table

__all__ = ["MORE_SETS", "load_more"]

MORE_SETS = {
    "stock": "stock.csv",
    "automobile": "automobile.csv",
    "car": "car.csv",
    "winequality_red": "winequality_red.csv",
    "diamonds": "diamonds.csv.gz",
}
"""Names of the files."""
_CONTINUOUS = {"stock"}
_N_CLASSES = 5


def load_more(name: str) -> tuple[FloatArray, IntArray]:
    """Return features and labels of a set."""
    path = Path(os.environ.get("ISBOR_DATA", "")) / "more" / MORE_SETS[name]
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {str(path)!r}. Put the set there, or let the environment variable ISBOR_DATA "
            "name the directory whose directory 'more' has it."
        )
    _, X, target = read_table(path)
    return X, cut_by_rank(target, _N_CLASSES) if name in _CONTINUOUS else target.astype(np.intp)
