"""Standard errors and intervals agree with closed forms, tables and brute force."""

from fractions import Fraction
from itertools import pairwise
from math import isclose, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.evaluation.statistics import (
    MAX_BOOTSTRAP_VALUES,
    Estimator,
    Moments,
    bootstrap_interval,
    normal_interval,
    t_p_value,
    t_quantile,
    wilson_interval,
)

SCORES = st.floats(-1000, 1000)


def clustered(clusters: list[list[int]]) -> float:
    """Compute Miller 2024, appendix A, literally, with the factor for few clusters."""
    values = [value for cluster in clusters for value in cluster]
    mean = Fraction(sum(values), len(values))
    total = sum((a - mean) * (b - mean) for item in clusters for a in item for b in item)
    return sqrt(total * len(clusters) / (len(clusters) - 1)) / len(values)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=8))
def test_the_error_of_sample_means_is_the_one_clustered_by_sample(
    clusters: list[list[int]],
) -> None:
    standard_error = Moments([sum(cluster) / 3 for cluster in clusters]).standard_error
    assert standard_error is not None
    assert isclose(standard_error, clustered(clusters), abs_tol=1e-12)


def test_identical_epochs_do_not_reduce_the_standard_error() -> None:
    once = [[1], [0], [1], [1]]
    four_times = [cluster * 4 for cluster in once]
    assert isclose(clustered(once), clustered(four_times))


def test_a_standard_error_equals_one_computed_by_hand() -> None:
    moments = Moments([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert moments.mean == 5.0
    assert isclose(moments.standard_error or 0, sqrt(32 / 7 / 8))
    assert Moments([1.0]).standard_error is None


def test_large_and_close_values_keep_their_standard_error() -> None:
    moments = Moments([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])
    assert isclose(moments.standard_error or 0, sqrt(30 / 4))


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    # R's binom::binom.confint(methods = "wilson"); 0 of n is [0, z² / (n + z²)] by hand.
    [
        (8, 10, 0.4901625, 0.9433178),
        (5, 10, 0.2365931, 0.7634069),
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
    ],
)
def test_wilsons_interval_is_that_of_the_tables(
    right: int, count: int, low: float, high: float
) -> None:
    interval = wilson_interval(right, count)
    assert interval == pytest.approx((low, high), abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_contains_the_proportion(proportion: tuple[int, int]) -> None:
    right, count = proportion
    low, high = wilson_interval(right, count)
    assert 0 <= low <= right / count <= high <= 1


def test_the_bootstrap_is_the_same_for_the_same_seed() -> None:
    values = [float(number % 3 == 0) for number in range(50)]
    assert (
        bootstrap_interval(values, "a")
        == bootstrap_interval(values, "a")
        != bootstrap_interval(values, "b")
    )


def test_the_bootstrap_of_a_seed_never_changes() -> None:
    values = [0.0, 0.1, 0.35, 0.7, 0.9, 1.0, 2.0, 3.1, 4.7, 5.3, 8.9]
    assert bootstrap_interval(values, "seed") == pytest.approx(
        (1.0039772727272727, 4.073181818181818), abs=1e-12
    )


def test_the_bootstrap_comes_to_the_normal_interval() -> None:
    values = [float(number % 2) for number in range(400)]
    moments = Moments(values)
    expected = normal_interval(moments.mean, moments.standard_error or 0)
    assert bootstrap_interval(values, "a") == pytest.approx(expected, abs=0.006)


@given(st.lists(SCORES, min_size=1, max_size=4))
@settings(max_examples=10)
def test_the_bootstrap_stays_between_the_values(values: list[float]) -> None:
    low, high = bootstrap_interval(values, "a")
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert bootstrap_interval([0.5] * 9, "a") == (0.5, 0.5)


def test_a_p_value_falls_as_the_statistic_grows() -> None:
    for freedom in (1, 2, 7, 1001):
        values = [t_p_value(t, freedom) for t in (0.0, 0.5, 1.0, 3.0)]
        assert all(first > second for first, second in pairwise(values))


def test_an_estimator_keeps_a_bounded_number_of_values() -> None:
    estimator = Estimator()
    for number in range(MAX_BOOTSTRAP_VALUES + 1000):
        estimator.add(float(number % 2))
    assert len(estimator._values) == MAX_BOOTSTRAP_VALUES
    error = estimator.standard_error
    assert error is not None
    assert estimator.interval("a") == normal_interval(estimator.mean, error)
    assert estimator.wilson_interval() == wilson_interval(1500, 3000)


def test_values_other_than_0_and_1_have_no_wilson_interval() -> None:
    estimator = Estimator()
    assert estimator.wilson_interval() is None
    estimator.add(1.0)
    assert estimator.wilson_interval() == wilson_interval(1, 1)
    assert estimator.interval("a") is None
    estimator.add(0.5)
    assert estimator.wilson_interval() is None


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    # Abramowitz & Stegun, table 26.10, for 5 % on both sides together.
    [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980), (5000, 1.960)],
)
def test_students_t_is_as_in_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=0.0006)
    assert t_p_value(-quantile, freedom) == pytest.approx(0.05, abs=0.0001)
    assert t_p_value(0.0, freedom) == 1.0
