r"""Data sets: two synthetic ones, and the seven benchmark sets of the paper.

``make_saddle``
    The synthetic set of the paper. With :math:`x` uniform on :math:`[0, 10]^2`,

    .. math:: f(x) = 10\,(x_1 - 5)(x_2 - 5), \qquad
              y = 1 + \#\{j : b_j < f(x) + \varepsilon\}, \quad \varepsilon \sim N(0, \text{noise}^2)

    with the thresholds :math:`b` of `SADDLE_THRESHOLDS`. The paper prints 0.5 instead of 5, but its class
    counts agree with 5.

``make_balance_scale``
    The UCI Balance Scale set, computed from its rule instead of read from a file.

``load_benchmark``
    The seven sets of Li & de Rijke (2018), read from files or downloaded from OpenML.

A benchmark file is a CSV table (gzipped if its name ends in ``.gz``) with one header line. All columns are
numbers, the last one is ``target``, and an empty field is a missing value.
"""

from isbor.datasets.benchmarks import cut_by_rank, load_benchmark
from isbor.datasets.synthetic import SADDLE_THRESHOLDS, make_balance_scale, make_saddle, saddle_labels

__all__ = [
    "SADDLE_THRESHOLDS",
    "cut_by_rank",
    "load_benchmark",
    "make_balance_scale",
    "make_saddle",
    "saddle_labels",
]
