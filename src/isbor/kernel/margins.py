r"""Margins: which thresholds a row has to keep its distance from.

A support vector machine for ordered classes wants each row on the right side of thresholds, by a margin of 1
at least:

.. math::
    \min_{w, b, \xi \ge 0}\; \tfrac12 \|w\|^2 + \sum_v C_v \xi_v \quad\text{such that}\quad
    s_v (f(x_{i(v)}) - b_{j(v)}) \ge 1 - \xi_v ,

one constraint v for each pair of a row i and a threshold j that concerns it, s = +1 if the row belongs above
the threshold and -1 below. Three choices of pairs:

==========  =============================================================================================
implicit    every row with every threshold: thresholds come out in order by themselves
adjacent    every row with the one or two thresholds next to its class; they need not come out in order
explicit    the same, and :math:`b_1 \le \dots \le b_{r-1}` is demanded
==========  =============================================================================================

The dual has a variable :math:`0 \le \gamma_v \le C_v` for each constraint and, for "explicit", a multiplier
:math:`\mu_j \ge 0` of :math:`b_{j-1} \le b_j`. With :math:`\beta_i = \sum_{v: i(v) = i} s_v \gamma_v`, the
coefficients of the score f = Kβ,

.. math::
    \max_{\gamma, \mu}\; \sum_v \gamma_v - \tfrac12 \beta^\top K \beta \quad\text{such that}\quad
    \sum_{v: j(v) = j} s_v \gamma_v = \mu_j - \mu_{j+1} \quad\text{for each } j,

where μ of the two ends (of all thresholds, if they are not linked) is zero. Let :math:`F_v = f_{i(v)} - s_v`.
A variable can rise by its sign, :math:`s_v\gamma_v \uparrow`, if s = 1 and γ < C, or s = -1 and γ > 0 ("up"),
and it can fall if s = 1 and γ > 0, or s = -1 and γ < C ("down"). All conditions of Karush, Kuhn and Tucker
together say that thresholds exist with

.. math:: \max_{\text{down}, j} F_v =: L_j \;\le\; b_j \;\le\; U_j := \min_{\text{up}, j} F_v ,

in order where they are linked, and equal where μ > 0.
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
    sign: FloatArray  # (v,) +1: the row belongs above the threshold, -1: below
    bound: FloatArray  # (v,) C, the price of a slack
    n_thresholds: int
    linked: bool  # whether thresholds are to be in order

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class MarginSolution(CutScore):
    """A solution of the problem, primal and dual."""

    gamma: FloatArray  # (v,) dual variables
    links: FloatArray  # (r-1,) μ, the multipliers of the order of thresholds; the first is zero
    objective: float  # of the dual
    gap: float  # primal less dual objective
    converged: bool


def margin_problem(y: IntArray, price: FloatArray, constraints: Constraints) -> MarginProblem:
    """Return the constraints of rows with labels 0 … r-1 and prices of their slacks, (n,)."""
    n_thresholds = int(y.max())
    j = np.arange(n_thresholds)[:, None]
    # Threshold j separates class j from class j + 1.
    concerned = (
        np.ones((n_thresholds, len(y)), bool) if constraints == "implicit" else (y == j) | (y == j + 1)
    )
    threshold, row = np.nonzero(concerned)
    sign = np.where(y[row] > threshold, 1.0, -1.0)
    return MarginProblem(row, threshold, sign, price[row], n_thresholds, linked=constraints == "explicit")
