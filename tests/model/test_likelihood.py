import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats
from numpy.testing import assert_allclose

from isbor.model.likelihood import edge_slopes, edges, ordinal_probit

STEP = 1e-5


def difference(function, x):
    """Central difference with one Richardson step, elementwise."""
    coarse = (function(x + STEP) - function(x - STEP)) / (2 * STEP)
    fine = (function(x + STEP / 2) - function(x - STEP / 2)) / STEP
    return (4 * fine - coarse) / 3


def interval_cases():
    """Rows (f, lower, upper) with |f| ≤ 6: gaps from 1e-2, and both half-lines."""
    rows = []
    for f in np.linspace(-6, 6, 25):
        for gap in (0.01, 0.05, 0.3, 1.0, 3.9, 4.1, 8.0):
            rows += [(f, -0.5 * gap, 0.5 * gap), (f, 0.7, 0.7 + gap)]
        rows += [(f, -np.inf, 0.4), (f, 0.4, np.inf)]
    return np.array(rows).T


F, LOWER, UPPER = interval_cases()


def field(name):
    return lambda f, low, high: getattr(ordinal_probit(f, low, high), name)


@pytest.mark.parametrize(
    ("value", "derivative", "sign", "argument"),
    [
        ("log_p", "slope", 1, 0),
        ("log_p", "lower", -1, 1),
        ("log_p", "upper", 1, 2),
        ("slope", "curvature", -1, 0),
        ("slope", "lower_curvature", 1, 1),
        ("slope", "upper_curvature", 1, 2),
        ("upper", "upper_curvature", 1, 0),
        ("lower", "lower_curvature", -1, 0),
    ],
)
def test_derivatives_in_score_and_thresholds(value, derivative, sign, argument):
    arguments = [F, LOWER, UPPER]
    finite = np.isfinite(arguments[argument])
    arguments = [a[finite] for a in arguments]

    def along(x):
        moved = list(arguments)
        moved[argument] = x
        return field(value)(*moved)

    expected = difference(along, arguments[argument])
    actual = sign * field(derivative)(*arguments)
    scale = np.maximum(1.0, np.abs(actual))
    assert_allclose(actual / scale, expected / scale, atol=2e-6)


def test_second_derivatives_in_the_thresholds():
    inside = np.isfinite(UPPER) & np.isfinite(LOWER)
    f, low, high = F[inside], LOWER[inside], UPPER[inside]
    terms = ordinal_probit(f, low, high)
    tie = terms.upper * terms.lower
    for actual, sign, value, in_upper in [
        (terms.upper_curvature + tie, -1, "upper", True),
        (tie, 1, "upper", False),
        (tie, -1, "lower", True),
        (terms.lower_curvature + tie, 1, "lower", False),
    ]:
        if in_upper:
            slope = difference(lambda x, v=value: field(v)(f, low, x), high)
        else:
            slope = difference(lambda x, v=value: field(v)(f, x, high), low)
        scale = np.maximum(1.0, np.abs(actual))
        assert_allclose(actual / scale, sign * slope / scale, atol=5e-6)


def exact(f, low, high):
    """The same quantities to many digits."""
    f, low, high = mpmath.mpf(f), mpmath.mpf(low), mpmath.mpf(high)
    z1, z2 = high - f, low - f
    tail = lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2
    density = lambda z: mpmath.mpf(0) if mpmath.isinf(z) else mpmath.npdf(z)
    p = tail(z2) - tail(z1) if z1 + z2 > 0 else tail(-z1) - tail(-z2)
    g1, g2 = density(z1) / p, density(z2) / p
    mean = g2 - g1
    c1 = mpmath.mpf(0) if mpmath.isinf(z1) else g1 * (z1 - mean)
    c2 = mpmath.mpf(0) if mpmath.isinf(z2) else g2 * (mean - z2)
    return [float(x) for x in (mpmath.log(p), mean, g1, g2, c1, c2)]


@pytest.mark.parametrize("f", [-1e3, -300.0, -51.0, -49.0, -7.0, -1.0, 0.0, 0.3, 5.5, 30.0, 52.0, 1e3])
def test_against_many_digits(f):
    cases = [
        (f, low, low + gap)
        for gap in (1e-8, 1e-6, 1e-3, 0.05, 0.3, 0.9, 1.0, 1.1, 3.9, 4.1, 10.0, 100.0, 1500.0)
        for low in (-gap / 2, 0.25)
    ]
    cases += [(f, -np.inf, t) for t in (-1.0, 2.0)] + [(f, t, np.inf) for t in (-1.0, 2.0)]
    with mpmath.workdps(80):
        expected = np.array([exact(*case) for case in cases])
    terms = ordinal_probit(*np.array(cases).T)
    actual = np.stack(
        [terms.log_p, terms.slope, terms.upper, terms.lower, terms.upper_curvature, terms.lower_curvature],
        axis=1,
    )
    assert_allclose(actual, expected, rtol=1e-8, atol=1e-8)


@given(f=floats(-1e3, 1e3), low=floats(-50, 50), gap=floats(1e-8, 1e3))
def test_curvature_is_between_zero_and_one(f, low, gap):
    low, high = np.array([low]), np.array([low + gap])
    curvature = ordinal_probit(np.array([f]), low, high).curvature
    assert 0.0 <= curvature[0] <= 1.0


@given(f=floats(-50, 50), low=floats(-50, 50), gap=floats(1e-3, 50), c=floats(0.1, 10))
def test_scale_is_a_gauge(f, low, gap, c):
    f, low, high = np.array([f]), np.array([low]), np.array([low + gap])
    one = ordinal_probit(f, low, high)
    scaled = ordinal_probit(c * f, c * low, c * high, scale=c)
    assert_allclose(scaled.log_p, one.log_p, rtol=1e-9, atol=1e-12)
    assert_allclose(scaled.slope * c, one.slope, rtol=1e-7, atol=1e-9)
    assert_allclose(scaled.curvature * c**2, one.curvature, rtol=1e-6, atol=1e-9)


def test_edges_enclose_every_level():
    assert edges(np.array([0.0, 2.0])).tolist() == [-np.inf, 0.0, 2.0, np.inf]


def test_slopes_of_the_edge_weights():
    f = np.tile(np.linspace(-5, 5, 21), 4)
    low = np.repeat([-np.inf, -0.5, 0.4, 1.0], 21)
    high = np.repeat([-0.5, -0.3, 3.0, np.inf], 21)
    at = ordinal_probit(f, low, high)
    above = np.where(np.isfinite(high), high - f - at.slope, 0.0)
    below = np.where(np.isfinite(low), at.slope - (low - f), 0.0)
    slopes = edge_slopes(at, above, below, 1.0 - at.curvature)

    def slope_of(quantity, by):
        return difference(
            lambda s: quantity(ordinal_probit(f + s * by[0], low + s * by[1], high + s * by[2])), 0.0
        )

    in_f, in_lower, in_upper = np.eye(3)
    assert_allclose(slopes.upper, slope_of(lambda d: d.upper_curvature, in_f), atol=1e-7)
    assert_allclose(slopes.lower, slope_of(lambda d: d.lower_curvature, in_f), atol=1e-7)
    assert_allclose(slopes.tie, slope_of(lambda d: d.upper * d.lower, in_f), rtol=1e-6, atol=1e-6)
    # The curvature's slopes in the thresholds are those of the edge weights in the score, negated.
    assert_allclose(-slopes.upper, slope_of(lambda d: d.curvature, in_upper), atol=1e-7)
    assert_allclose(-slopes.lower, slope_of(lambda d: d.curvature, in_lower), atol=1e-7)
