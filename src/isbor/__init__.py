"""Sparse Bayesian ordinal regression, with the API of scikit-learn.

The public names are imported when they are first used, so that `import isbor` and the command line start at
once.
"""

from typing import TYPE_CHECKING

from isbor._version import __version__ as __version__

__all__ = [
    "GPOR",
    "ISBOR",
    "ISVOR",
    "KDLOR",
    "SBOR",
    "SVOR",
    "ModelFileError",
    "OrderedLabelEncoder",
    "Step",
    "StopReason",
    "datasets",
    "export",
    "from_ratings",
    "load",
    "meta",
    "metrics",
    "sources",
]

if TYPE_CHECKING:
    from isbor import datasets, export, meta, metrics, sources
    from isbor._core.trace import Step, StopReason
    from isbor.data.label_encoder import OrderedLabelEncoder
    from isbor.data.ratings import from_ratings
    from isbor.estimators import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR, load
    from isbor.files.errors import ModelFileError
else:
    # Hidden from type checkers, which would take every name for one of the package.

    def __getattr__(name):
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'isbor' has no attribute {name!r}")
        if name in ("datasets", "export", "meta", "metrics", "sources"):
            return import_module(f"isbor.{name}")  # which also makes it an attribute
        homes = {
            "ModelFileError": "isbor.files.errors",
            "OrderedLabelEncoder": "isbor.data.label_encoder",
            "Step": "isbor._core.trace",
            "StopReason": "isbor._core.trace",
            "from_ratings": "isbor.data.ratings",
        }
        value = globals()[name] = getattr(import_module(homes.get(name, "isbor.estimators")), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
