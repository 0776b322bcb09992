"""Which variance of the score gives the best class probabilities: Gaussians against importance sampling.

The exact posterior of weights and thresholds, at the fitted prior precisions, is sampled by weighting draws
from a heavy-tailed version of its Laplace approximation. P(y ≤ k) on new rows is then an average; the table
shows how far each Gaussian formula is from it.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from benchmarks.report import number, print_table
from isbor._core.parallel import Workers
from isbor._core.types import FloatArray, IntArray
from isbor.data.rows import TrainingRows, canonical_rows
from isbor.inference.mode import Mode, posterior_precision
from isbor.model.basis import Functions, RowDictionary
from isbor.model.likelihood import ordinal_probit
from isbor.search.recorder import Recorder
from isbor.search.settings import SolverSettings
from isbor.search.solvers.gram import solve_gram

N_DRAWS = 40_000
DEGREES_OF_FREEDOM = 8
FORMULAS = (
    "none (plug-in)",
    "centred, given b",
    "uncentred, given b",
    "full Var(b_k − f)",
    "uncentred, joint block",
)


def make_table(
    n: int, d: int, score: Callable[[FloatArray], FloatArray], noise: float, cuts: list[float], seed: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return features, labels and new features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.digitize(score(X) + noise * rng.normal(size=n), cuts)
    return X, y, 1.5 * rng.normal(size=(200, d))


def bowl(X: FloatArray) -> FloatArray:
    return X[:, 0] + 0.7 * X[:, 1] ** 2


def wave(X: FloatArray) -> FloatArray:
    return 2.0 * np.sin(X[:, 0]) + X[:, 1]


PROBLEMS = {
    "bowl, 60 rows, γ = 0.05": (make_table(60, 2, bowl, 0.5, [0.0, 0.8], 1), 0.05),
    "bowl, 60 rows, γ = 0.3": (make_table(60, 2, bowl, 0.5, [0.0, 0.8], 2), 0.3),
    "bowl, 60 rows, γ = 0.01": (make_table(60, 2, bowl, 0.5, [0.0, 0.8], 3), 0.01),
    "wave, 150 rows, γ = 0.05": (make_table(150, 3, wave, 1.0, [-1.0, 0.0, 1.0], 4), 0.05),
    "wave, 150 rows, γ = 0.2": (make_table(150, 3, wave, 1.0, [-1.0, 0.0, 1.0], 5), 0.2),
}


def sampled(
    rows: TrainingRows, basis: Functions, mode: Mode, phi: FloatArray, precision: FloatArray
) -> tuple[FloatArray, float]:
    """Return P(y ≤ k) at the new rows from the exact posterior, (n, r-1), and the effective sample size."""
    rng = np.random.default_rng(0)
    m, size = len(basis), len(precision)
    z = rng.normal(size=(N_DRAWS, size))
    z *= np.sqrt(DEGREES_OF_FREEDOM / rng.chisquare(DEGREES_OF_FREEDOM, N_DRAWS))[:, None]
    log_density = -0.5 * (DEGREES_OF_FREEDOM + size) * np.log1p((z**2).sum(axis=1) / DEGREES_OF_FREEDOM)
    draws = np.append(mode.weights, mode.thresholds) + z @ np.linalg.inv(np.linalg.cholesky(precision))
    ordered = np.all(np.diff(draws[:, m:], axis=1) > 0, axis=1)
    draws, log_density = draws[ordered], log_density[ordered]
    w, b = draws[:, :m], draws[:, m:]
    ends = np.full((len(b), 1), np.inf)
    cuts = np.hstack([-ends, b, ends])
    beta = mode.expansion.threshold_precision
    log_posterior = -0.5 * w**2 @ mode.alpha - 0.5 * beta * (b**2).sum(axis=1)
    for i, y in enumerate(rows.y):
        f = w @ basis(rows.X[i : i + 1])[0]
        log_posterior += rows.weight[i] * ordinal_probit(f, cuts[:, y], cuts[:, y + 1]).log_p
    weight = np.exp(log_posterior - log_density - (log_posterior - log_density).max())
    weight /= weight.sum()
    scores = w @ phi.T
    cumulative = np.stack([weight @ ndtr(b[:, [k]] - scores) for k in range(b.shape[1])], axis=1)
    return cumulative, float(1.0 / (weight**2).sum())


def gaussian(basis: Functions, mode: Mode, phi: FloatArray, precision: FloatArray) -> list[FloatArray]:
    """Return P(y ≤ k) by each of `FORMULAS`."""
    m, t = len(basis), len(mode.thresholds)
    mean = (phi @ mode.weights)[:, None]

    def quadratic_form(rows: FloatArray, matrix: FloatArray) -> FloatArray:
        return np.einsum("ij,jk,ik->i", rows, matrix, rows)[:, None]

    # Without the offsets, b and f both move by offset · w.
    shift = np.eye(m + t)
    shift[m:, :m] = -basis.offset
    uncentred = shift.T @ precision @ shift
    covariance = np.linalg.inv(precision)
    full = [
        quadratic_form(np.hstack([-phi, np.tile(np.eye(t)[k], (len(phi), 1))]), covariance) for k in range(t)
    ]
    variances = [
        np.zeros((len(phi), 1)),
        quadratic_form(phi, np.linalg.inv(precision[:m, :m])),
        quadratic_form(phi + basis.offset, np.linalg.inv(uncentred[:m, :m])),
        np.hstack(full),
        quadratic_form(phi + basis.offset, np.linalg.inv(uncentred)[:m, :m]),
    ]
    return [ndtr((mode.thresholds - mean) / np.sqrt(1.0 + v)) for v in variances]


def main() -> None:
    table = []
    for name, ((X, y, new), gamma) in PROBLEMS.items():
        rows, scaling = canonical_rows(X, y, np.ones(len(y)))
        dictionary = RowDictionary(rows, gamma)
        with Workers() as workers:
            recorder = Recorder("fit", rows.source)
            model, _ = solve_gram(rows, dictionary, None, SolverSettings(), workers, recorder)
        basis, mode = dictionary.basis(model.functions.origin), model.mode
        precision = posterior_precision(mode)
        phi = basis(scaling(new))
        exact, effective = sampled(rows, basis, mode, phi, precision)
        errors = [np.abs(p - exact).mean() for p in gaussian(basis, mode, phi, precision)]
        table.append([name, *(number(error, 5) for error in errors), number(effective, 0)])
    print_table("Mean |error| of P(y ≤ k)", ["problem", *FORMULAS, "effective draws"], table)


if __name__ == "__main__":
    main()
