"""The numbers published in the paper.

C. Li and M. de Rijke, "Incremental Sparse Bayesian Ordinal Regression", Neural Networks, 2018: the tables of
mean absolute errors and running times, of Wilcoxon tests, and of relevant and support samples. Names of
models are those of our catalogue: the paper's KDOR is KDLOR, and its ISBOR, with a width by cross-validation,
is "isbor-cv".
"""

from collections.abc import Mapping

from isbor.experiments.reporting.significance import Tally

__all__ = ["PAPER_MAE", "PAPER_ROWS", "PAPER_SECONDS", "PAPER_TALLIES", "PAPER_VECTORS"]

_SETS = ("bs", "swd", "marketing", "bank", "computer", "calhouse", "census")


def _by_set(*values: float | tuple[float, float] | None) -> dict[str, float | tuple[float, float]]:
    return {name: value for name, value in zip(_SETS, values, strict=True) if value is not None}


PAPER_ROWS: Mapping[str, int] = dict(zip(_SETS, (468, 750, 6744, 8000, 8092, 20490, 22584), strict=True))
"""Training rows."""

# Mean and standard deviation over 20 splits; runs that took more than 24 hours are missing.
PAPER_MAE: Mapping[str, Mapping[str, float | tuple[float, float]]] = {
    "kdlor": _by_set(
        (0.17, 0.03), (0.58, 0.03), (1.60, 0.03), (0.21, 0.07), (0.39, 0.03), (0.46, 0.05), (0.63, 0.06)
    ),
    "gpor": _by_set((0.03, 0.02), (0.41, 0.03), None, None, None, None, None),
    "svor": _by_set((0.00, 0.00), (0.41, 0.03), (0.83, 0.01), (0.20, 0.06), (0.40, 0.03), (0.63, 0.05), None),
    "sbor": _by_set((0.04, 0.06), (0.52, 0.06), (1.45, 0.03), (0.34, 0.19), (0.44, 0.12), None, (0.60, 0.30)),
    "isvor": _by_set(
        (0.36, 0.53), (0.56, 0.04), (1.20, 0.08), (0.80, 0.10), (0.36, 0.04), (0.87, 0.07), (0.65, 0.06)
    ),
    "isbor-cv": _by_set(
        (0.02, 0.01), (0.43, 0.02), (1.74, 0.05), (0.19, 0.05), (0.37, 0.05), (0.50, 0.04), (0.63, 0.05)
    ),
}

PAPER_SECONDS: Mapping[str, Mapping[str, float | tuple[float, float]]] = {
    "kdlor": _by_set(0.08, 0.27, 159.92, 97.27, 96.86, 1369.14, 1696.18),
    "gpor": _by_set(359.94, 205.60, None, None, None, None, None),
    "svor": _by_set(0.08, 0.83, 44.49, 932.59, 2682.19, 4350.30, None),
    "sbor": _by_set(0.96, 2.96, 93.73, 986.12, 204.85, None, 3713.62),
    "isvor": _by_set(1.53, 0.77, 65.22, 73.89, 73.61, 907.95, 774.22),
    "isbor-cv": _by_set(0.64, 1.35, 62.76, 91.02, 94.84, 810.22, 710.84),
}

PAPER_VECTORS: Mapping[str, Mapping[str, float | tuple[float, float]]] = {
    "svor": _by_set(60.2, 718.9, 3756.0, 5685.1, 3373.1, 12788.3, None),
    "isvor": _by_set(283.3, 454.1, 10185.1, 8128.5, 7739.5, 23919.8, 28348.5),
    "sbor": _by_set(9.0, 104.8, 51.3, 16.6, 3056.1, None, 1001.0),
    "isbor-cv": _by_set(17.0, 58.5, 51.1, 44.8, 30.9, 84.8, 73.0),
}

PAPER_TALLIES: Mapping[str, Tally] = {
    "gpor": Tally(4, 6, 25),
    "svor": Tally(24, 7, 4),
    "sbor": Tally(11, 12, 12),
    "kdlor": Tally(11, 8, 16),
    "isvor": Tally(11, 11, 13),
    "isbor-cv": Tally(17, 10, 8),
}
