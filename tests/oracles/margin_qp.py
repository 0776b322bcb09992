"""The batch optimum of a margin problem, by an interior-point method for general quadratic programs."""

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Optimum:
    """The solution of the dual of `isbor.kernel.margins`."""

    gamma: np.ndarray  # (v,) one for each constraint
    mu: np.ndarray  # (J-1,) of b_j ≤ b_{j+1}; zero where thresholds are not linked
    beta: np.ndarray  # (n,) coefficients of the kernels
    objective: float  # Σ γ - ½ βᵀKβ


def solve_margin_qp(problem, gram, tolerance=1e-12):
    """Maximise Σ γ - ½ βᵀKβ over (γ, μ, β), all constraints written out.

    Raises ArithmeticError where the method stalls before primal and dual objective agree to 1e-8: whatever
    it calls its result then, it is no reference.
    """
    v, n, J = len(problem), len(gram), problem.n_thresholds
    m = J - 1
    one_each = (np.arange(v), problem.sign)
    to_rows = sparse.csc_matrix((one_each[1], (problem.row, one_each[0])), (n, v))
    to_thresholds = sparse.csc_matrix((one_each[1], (problem.threshold, one_each[0])), (J, v))
    links = sparse.diags([1.0, -1.0], [-1, 0], (J, m)) if m else sparse.csc_matrix((J, 0))
    none = sparse.csc_matrix

    P = sparse.block_diag([none((v + m, v + m)), sparse.triu(gram)], format="csc")
    q = np.concatenate([-np.ones(v), np.zeros(m + n)])
    A = sparse.bmat(
        [
            [to_rows, none((n, m)), -sparse.identity(n)],  # β = Σ s γ
            [to_thresholds, -links, none((J, n))],  # Σ s γ = μ_j - μ_{j+1}
            [sparse.identity(v), none((v, m)), none((v, n))],  # γ ≤ C
            [-sparse.identity(v), none((v, m)), none((v, n))],  # γ ≥ 0
            [none((m, v)), -sparse.identity(m), none((m, n))],  # μ ≥ 0, or μ = 0
        ],
        format="csc",
    )
    b = np.concatenate([np.zeros(n + J), problem.bound, np.zeros(v + m)])
    cones = [clarabel.ZeroConeT(n + J), clarabel.NonnegativeConeT(2 * v)]
    if m:
        cones.append(clarabel.NonnegativeConeT(m) if problem.linked else clarabel.ZeroConeT(m))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.max_threads = 1
    solution = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    gap = abs(solution.obj_val - solution.obj_val_dual) / max(1.0, abs(solution.obj_val))
    if not gap < 1e-8:
        raise ArithmeticError(f"The quadratic program was not solved: {solution.status}, gap {gap:.0e}.")
    x = np.array(solution.x)
    gamma, mu = np.clip(x[:v], 0.0, problem.bound), np.maximum(x[v : v + m], 0.0)
    beta = to_rows @ gamma
    return Optimum(gamma, mu, beta, float(gamma.sum() - 0.5 * beta @ gram @ beta))
