r"""The optimisation problem of support vector machines for ordered classes.

Each row should be on the right side of certain thresholds, by a margin of at least 1:

.. math::
    \min_{w, b, \xi \ge 0}\; \tfrac12 \|w\|^2 + \sum_v C_v \xi_v \quad\text{such that}\quad
    s_v (f(x_{i(v)}) - b_{j(v)}) \ge 1 - \xi_v ,

with one constraint v for each chosen pair of a row i and a threshold j; s = +1 if the row belongs above the
threshold, -1 if below. There are three choices of pairs:

==========  =============================================================================================
implicit    every row with every threshold; the thresholds are then in order at the optimum
adjacent    every row with the one or two thresholds of its class; they may be out of order
explicit    as adjacent, with the further constraint :math:`b_1 \le \dots \le b_{r-1}`
==========  =============================================================================================

The dual has a variable :math:`0 \le \gamma_v \le C_v` for each constraint and, for "explicit", a multiplier
:math:`\mu_j \ge 0` of :math:`b_{j-1} \le b_j`. With :math:`\beta_i = \sum_{v: i(v) = i} s_v \gamma_v`, the
coefficients of the score f = Kβ,

.. math::
    \max_{\gamma, \mu}\; \sum_v \gamma_v - \tfrac12 \beta^\top K \beta \quad\text{such that}\quad
    \sum_{v: j(v) = j} s_v \gamma_v = \mu_j - \mu_{j+1} \quad\text{for each } j,

where μ is zero at the two ends (and everywhere if thresholds are not linked, that is, not "explicit"). Let
:math:`F_v = f_{i(v)} - s_v`. The product :math:`s_v\gamma_v` can increase ("up") if s = 1 and γ < C, or
s = -1 and γ > 0. It can decrease ("down") if s = 1 and γ > 0, or s = -1 and γ < C. The Karush-Kuhn-Tucker
conditions are equivalent to the existence of thresholds with

.. math:: \max_{\text{down}, j} F_v =: L_j \;\le\; b_j \;\le\; U_j := \min_{\text{up}, j} F_v ,

which, if linked, are in order, and equal where μ > 0.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from isbor._core.types import FloatArray, IntArray
from isbor.kernel.kernels import CutScore

__all__ = ["Constraints", "MarginProblem", "MarginSolution", "margin_problem"]

Constraints: TypeAlias = Literal["implicit", "explicit", "adjacent"]


@dataclass(frozen=True, slots=True)
class MarginProblem:
    """The constraints, one for each pair of a row and a threshold, ordered by threshold and then by row."""

    row: IntArray  # (v,)
    threshold: IntArray  # (v,)
    sign: FloatArray  # (v,) +1 if the row belongs above the threshold, -1 if below
    bound: FloatArray  # (v,) C, the penalty per unit of slack
    n_thresholds: int
    linked: bool  # whether the order of the thresholds is a constraint

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class MarginSolution(CutScore):
    """The primal and dual solution."""

    gamma: FloatArray  # (v,) dual variables
    links: FloatArray  # (r-1,) μ, the multipliers of the order constraints; the first is zero
    objective: float  # dual objective
    gap: float  # primal minus dual objective
    converged: bool


def margin_problem(y: IntArray, C: FloatArray, constraints: Constraints) -> MarginProblem:
    """Return the constraints of rows with labels 0 … r-1 and slack penalties C, (n,)."""
    n_thresholds = int(y.max())
    j = np.arange(n_thresholds)[:, None]
    # Threshold j separates class j from class j + 1.
    constrained = (
        np.ones((n_thresholds, len(y)), bool) if constraints == "implicit" else (y == j) | (y == j + 1)
    )
    threshold, row = np.nonzero(constrained)
    sign = np.where(y[row] > threshold, 1.0, -1.0)
    return MarginProblem(row, threshold, sign, C[row], n_thresholds, linked=constraints == "explicit")
