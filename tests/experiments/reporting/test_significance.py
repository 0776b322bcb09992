"""Tests of significance, against enumeration, published numbers and scipy."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from isbor.experiments.reporting.significance import (
    Friedman,
    Tally,
    friedman,
    nemenyi_quantile,
    pair_tests,
    signed_rank_test,
    smallest_p,
    tally_pairs,
)

MODELS = ("a", "b", "c")


def table_of(values, models=MODELS):
    """Errors of one split per task, from rows of one error per model."""
    return {
        f"task {i}": {model: {0: value} for model, value in zip(models, row, strict=True)}
        for i, row in enumerate(values)
    }


def tallied(errors, models=MODELS, level=0.1):
    return tally_pairs(pair_tests(errors, models, level), models)


def errors_on(task, **by_model):
    return {task: {model: dict(enumerate(values)) for model, values in by_model.items()}}


# Eighths, so that sums and differences are exact and ties are frequent; some runs unfinished. All models
# ran split 0: complete ones have it in common.
EIGHTHS = st.integers(0, 16).map(lambda n: n / 8)
RUNS = st.builds(
    lambda first, others: {0: first} | others,
    st.just(math.nan) | EIGHTHS | st.just(0.5),
    st.dictionaries(st.integers(1, 9), EIGHTHS, max_size=9),
)
SOME_ERRORS = st.dictionaries(
    st.sampled_from([f"task {k}" for k in range(4)]),
    st.fixed_dictionaries(dict.fromkeys(MODELS, RUNS)),
    min_size=2,
)


def n_ranked(errors):
    """Return the number of tasks on which some model finished all its runs."""
    return sum(not all(math.isnan(runs[0]) for runs in task.values()) for task in errors.values())


# Signed ranks


@pytest.mark.parametrize("n", [1, 2, 5, 20, 40])
def test_without_ties_the_p_value_is_scipys(n):
    d = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    assert_allclose(signed_rank_test(d)[0], stats.wilcoxon(d, method="exact").pvalue, rtol=1e-12)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_the_p_value_counts_the_signs_that_are_as_extreme(differences):
    d = np.array([x for x in differences if x], dtype=float)
    ranks = stats.rankdata(np.abs(d))
    sums = [abs(np.array(signs) @ ranks) for signs in product([-1, 1], repeat=len(d))]
    expected = np.mean(np.array(sums) >= abs(np.sign(d) @ ranks) - 1e-9)
    assert_allclose(signed_rank_test(np.array(differences))[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(0, 1.0), (1, 1.0), (3, 0.25), (20, 2.0**-19)])
def test_the_smallest_p_value_is_that_of_differences_of_one_sign(n, p):
    assert smallest_p(n) == p
    assert signed_rank_test(np.arange(1.0, n + 1))[0] == p


# Pairs of models


def test_the_level_is_divided_by_the_number_of_ordered_pairs():
    n = 6
    better, worse = [0.1] * n, [0.1 + 0.01 * k for k in range(1, n + 1)]
    errors = errors_on("t", a=better, b=worse, c=better)
    # p = 2⁻⁵ = 0.03125, to be compared with the level divided by 2 and by 6.
    assert tallied(errors, ["a", "b"], level=0.07)["a"] == Tally(1, 0, 0)
    assert tallied(errors, ["a", "b"], level=0.06)["a"] == Tally(0, 1, 0)
    assert tallied(errors, MODELS, level=0.19)["b"] == Tally(0, 0, 2)
    assert tallied(errors, MODELS, level=0.18)["b"] == Tally(0, 2, 0)


def test_a_pair_is_tested_on_the_splits_both_have():
    (apart,) = pair_tests({"t": {"a": {0: 0.1}, "b": {1: 0.9}}}, ["a", "b"])
    assert (apart.n_splits, apart.outcome) == (0, "draw")
    assert math.isnan(apart.mean_difference)
    errors = {"t": {"a": {0: 0.5, 1: 0.25, 4: 0.0}, "b": {4: 0.75, 1: 0.5, 7: 9.0}}}
    (test,) = pair_tests(errors, ["a", "b"])
    assert (test.task, test.first, test.second, test.n_splits) == ("t", "a", "b", 2)
    assert test.mean_difference == -0.5
    assert (test.p_value, test.outcome) == (0.5, "draw")


def test_an_unfinished_run_loses_to_a_complete_model_and_two_unfinished_draw():
    """On the 18 splits that "a" finished it is better by far; as in the paper, it loses all the same."""
    late, good = math.nan, [0.5 + 0.01 * k for k in range(20)]
    errors = errors_on("t", a=[0.1] * 18 + [late] * 2, b=good, c=[late] * 20)
    tests = {(test.first, test.second): test for test in pair_tests(errors, MODELS)}
    assert [tests[pair].outcome for pair in [("a", "b"), ("b", "c"), ("a", "c")]] == ["loss", "win", "draw"]
    assert [test.n_splits for test in tests.values()] == [18, 0, 0]
    assert all(math.isnan(test.p_value) and math.isnan(test.mean_difference) for test in tests.values())
    assert tallied(errors) == {"a": Tally(0, 1, 1), "b": Tally(2, 0, 0), "c": Tally(0, 1, 1)}
    not_yet = {"t": errors["t"] | {"a": {split: 0.1 for split in range(18)}}}  # two splits to be run
    assert tallied(not_yet)["a"] == Tally(2, 0, 0)


def test_who_was_not_run_is_not_compared():
    errors = {"t": {"a": {0: 0.5}, "b": {0: math.nan}, "c": {}}, "u": {"c": {0: 0.1}}}
    assert tallied(errors) == {"a": Tally(1, 0, 0), "b": Tally(0, 0, 1), "c": Tally(0, 0, 0)}
    ranked = table_of([(1, 2, 3), (2, 1, 3)])
    for not_ranked in (
        {"part": {"a": {0: 0.9}, "b": {0: 0.1}}},
        {"nobody": dict.fromkeys(MODELS, {0: math.nan})},
        {"apart": {"a": {0: 0.1}, "b": {1: 0.1}, "c": {0: 0.2, 1: 0.2}}},
    ):
        assert friedman(ranked | not_ranked, MODELS) == friedman(ranked, MODELS)


def test_the_sums_of_ranks_name_the_winner():
    """One split on which it is far worse costs a model its mean, not its win."""
    (test,) = pair_tests(errors_on("t", a=[0.1] * 19 + [0.9], b=[0.11] * 19 + [0.1]), ["a", "b"])
    assert test.mean_difference > 0.0
    assert test.outcome == "win"


def test_differences_by_rounding_are_ties():
    """0.3 − 0.2 and 0.2 − 0.1 differ in the last bit; 0.1 + 0.2 and 0.3 too."""
    (test,) = pair_tests(errors_on("t", a=[0.3, 0.1, 0.1 + 0.2], b=[0.2, 0.2, 0.3]), ["a", "b"])
    assert test.p_value == 1.0
    errors = errors_on("t", a=[0.1, 0.2], b=[0.3, 0.0]) | table_of([(1, 2)], "ab")
    assert friedman(errors, "ab").mean_ranks == (1.25, 1.75)


@settings(max_examples=50)
@given(SOME_ERRORS, st.permutations(MODELS), st.integers(0, 50))
def test_neither_the_order_of_models_nor_a_harder_task_matters(errors, order, constant):
    task = min(errors)
    shifted = {
        model: {split: error + constant for split, error in by_split.items()}
        for model, by_split in errors[task].items()
    }
    harder = errors | {task: shifted}
    tallies = tallied(errors, level=1.0)
    assert tallied(errors, order, level=1.0) == tallies == tallied(harder, level=1.0)
    assert sum(tally.wins for tally in tallies.values()) == sum(tally.losses for tally in tallies.values())
    if n_ranked(errors) < 2:
        return
    result, permuted = friedman(errors, MODELS), friedman(errors, order)
    ranks = dict(zip(result.models, result.mean_ranks, strict=True))
    assert permuted.mean_ranks == tuple(ranks[model] for model in order)
    assert (permuted.statistic, permuted.p_value) == (result.statistic, result.p_value)
    assert friedman(harder, MODELS) == result


# Ranks over tasks

# Demšar (2006), table 6: AUC, more is better. The paper ranks the third before the fourth on the
# last but one, by digits that it does not print.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
TREES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def test_the_example_of_demsar():
    result = friedman(table_of(1.0 - AUC, TREES), TREES, level=0.05)
    assert_allclose(result.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert_allclose(result.critical_difference, 1.25, atol=5e-3)
    assert result.groups() == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)
    # The paper's χ² = 9.28 and F = 3.69 are not corrected for ties; scipy's χ² is.
    chi_square = stats.friedmanchisquare(*AUC.T).statistic
    assert_allclose(result.statistic, 13 * chi_square / (14 * 3 - chi_square), rtol=1e-12)
    assert result.statistic > 3.69
    at_ten_percent = friedman(table_of(1.0 - AUC, TREES), TREES, level=0.1)
    assert_allclose(at_ten_percent.critical_difference, 1.12, atol=5e-3)
    assert at_ten_percent.groups() == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))


def test_tasks_that_agree_are_as_sure_as_chance_allows():
    result = friedman(table_of([(1, 2, 3)] * 3), MODELS)
    assert result.mean_ranks == (1.0, 2.0, 3.0)
    assert result.statistic == math.inf
    assert_allclose(result.p_value, 1 / 6**2, rtol=1e-12)
    shared = friedman(table_of([(1, 2, 2)] * 4), MODELS)
    assert shared.mean_ranks == (1.0, 2.5, 2.5)
    assert_allclose(shared.p_value, 1 / 3**3, rtol=1e-12)
    alike = friedman(table_of([(1, 1, 1), (2, 2, 2)]), MODELS)
    assert (alike.mean_ranks, alike.statistic, alike.p_value) == ((2.0, 2.0, 2.0), 0.0, 1.0)


def test_unfinished_models_share_the_last_ranks():
    late = math.nan
    errors = errors_on("t", a=[5.0, 5.0], b=[0.1, late], c=[late, late]) | table_of([(0.1, 0.2, 0.2)])
    assert friedman(errors, MODELS).mean_ranks == (1.0, 2.5, 2.5)


def test_quantiles_are_those_of_demsar():
    published = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    assert_allclose([nemenyi_quantile(k, 0.05) for k in range(2, 11)], published, atol=1e-3)


@pytest.mark.parametrize(
    ("ranks", "groups"),
    [
        ((4.0, 1.0, 2.5, 2.0), (("b", "d"), ("d", "c"))),
        ((1.0, 3.0, 5.0, 7.0), ()),
        ((2.5, 2.5, 2.5, 2.5), (("a", "b", "c", "d"),)),
    ],
)
def test_groups_are_as_large_as_the_critical_difference_allows(ranks, groups):
    assert Friedman(tuple("abcd"), ranks, 5, 1.0, 0.5, 1.0, 0.1).groups() == groups


# What cannot be compared


def test_what_cannot_be_compared_is_named():
    errors = table_of([(1, 2, 3)])
    with pytest.raises(ValueError, match=r"models are \['a'\]; at least 2"):
        tallied(errors, ["a"])
    with pytest.raises(ValueError, match="each named once"):
        friedman(errors, ["a", "a"])
    with pytest.raises(ValueError, match=r"1 of 2 task\(s\) were run by all models"):
        friedman(errors | {"none": {}}, MODELS)
