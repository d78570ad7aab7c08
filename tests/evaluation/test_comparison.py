"""Tests of the comparison of two runs."""

from itertools import product
from math import isclose, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.evaluation.comparison import (
    MAX_ENUMERATED_SIGNS,
    MAX_SAMPLED_SIGNS,
    compare,
    mcnemar,
    sign_flip,
)
from perdure.evaluation.seeded_random import integers


def run(values: list[float]) -> dict[str, float]:
    return {f"s{number:04}": value for number, value in enumerate(values)}


@pytest.mark.parametrize(
    ("better", "worse", "p_value"),
    # 2 · Σ C(n, k) / 2ⁿ by hand.
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (9, 1, 22 / 1024), (3, 3, 1.0)],
)
def test_mcnemars_test_is_the_binomial(better: int, worse: int, p_value: float) -> None:
    assert mcnemar(better, worse) == pytest.approx(p_value)
    assert mcnemar(worse, better) == mcnemar(better, worse)


def test_mcnemars_approximation_is_close_to_the_exact_test() -> None:
    half = MAX_SAMPLED_SIGNS // 2
    assert mcnemar(half + 30, half - 30) == pytest.approx(mcnemar(half + 31, half - 30), rel=0.15)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=12))
def test_both_tests_agree_on_binary_scores(differences: list[float]) -> None:
    better, worse = differences.count(1.0), differences.count(-1.0)
    assert isclose(sign_flip(differences)[1], mcnemar(better, worse))


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
@example([2, 6, 19, -19, -8])  # whose sum is 0, but for rounding
def test_the_sign_flip_test_counts_every_combination(tenths: list[int]) -> None:
    rows = product((1, -1), repeat=len(tenths))
    sums = [abs(sum(sign * item for sign, item in zip(row, tenths, strict=True))) for row in rows]
    share = sum(item >= abs(sum(tenths)) for item in sums) / len(sums)
    test, p_value = sign_flip([tenth / 10 for tenth in tenths])
    assert test == "sign-flip"
    assert p_value == pytest.approx(share)


def test_sampled_signs_approximate_the_exact_p_value() -> None:
    drawn = [number / 2**64 - 0.4 for number in integers("differences", MAX_ENUMERATED_SIGNS + 1)]
    test, p_value = sign_flip(drawn)
    assert test == "sign-flip, drawn"
    sums = [0.0]
    for item in drawn:
        sums = [total + sign * item for total in sums for sign in (1, -1)]
    exact = sum(abs(total) >= abs(sum(drawn)) * (1 - 1e-9) for total in sums) / len(sums)
    assert p_value == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / 10_000))
    assert sign_flip(drawn) == (test, p_value)


def test_a_sampled_p_value_is_never_0() -> None:
    assert sign_flip([1.0] * 100) == ("sign-flip, drawn", 1 / 10_001)


def test_many_differences_use_the_normal_distribution() -> None:
    test, p_value = sign_flip([1.0] * 540 + [-1.0] * 461)
    assert test == "normal"
    assert p_value == pytest.approx(0.0125, abs=0.001)  # z = 79 / sqrt(1001)


def test_identical_runs_have_no_difference() -> None:
    comparison = compare(run([1, 0, 0.5]), run([1, 0, 0.5]))
    assert (comparison.difference, comparison.p_value, comparison.significant) == (0, 1.0, False)
    assert (comparison.better, comparison.worse) == ((), ())


def test_changed_samples_are_sorted_by_the_size_of_the_change() -> None:
    comparison = compare(run([1, 0, 0.5, 0.2]), run([1, 1, 0.4, 0.9]))
    assert [item.id for item in comparison.better] == ["s0001", "s0003"]
    assert [(item.id, item.before, item.after) for item in comparison.worse] == [
        ("s0002", 0.5, 0.4)
    ]
    assert (comparison.pairs, comparison.test) == (4, "sign-flip")
    assert comparison.difference == pytest.approx(0.4)
    assert comparison.before == pytest.approx(0.425)
    assert comparison.after == pytest.approx(0.825)
    assert comparison.interval is not None
    assert comparison.interval.low < 0.4 < comparison.interval.high


def test_pairing_removes_the_difficulty_of_the_samples() -> None:
    before = [float(number % 10) for number in range(30)]
    comparison = compare(
        run(before), run([item + 0.1 + 0.01 * (at % 2) for at, item in enumerate(before)])
    )
    assert comparison.significant
    assert comparison.standard_error == pytest.approx(0.000929, abs=1e-5)


def test_binary_scores_are_compared_by_mcnemars_test() -> None:
    comparison = compare(run([0.0] * 9 + [1.0]), run([1.0] * 9 + [0.0]))
    assert comparison.test == "mcnemar"
    assert comparison.p_value == pytest.approx(22 / 1024)


def test_only_samples_of_both_runs_are_compared() -> None:
    comparison = compare({"a": 1.0, "b": 1.0}, {"b": 0.0, "c": 1.0})
    assert (comparison.pairs, comparison.only_before, comparison.only_after) == (1, ("a",), ("c",))
    assert (comparison.difference, comparison.standard_error, comparison.interval) == (
        -1.0,
        None,
        None,
    )


def test_runs_with_no_sample_in_common_cannot_be_compared() -> None:
    comparison = compare({"a": 1.0}, {"b": 1.0})
    assert (comparison.pairs, comparison.p_value, comparison.test) == (0, None, "none")
    assert not comparison.significant


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_swapping_the_runs_negates_the_difference(pairs: list[tuple[float, float]]) -> None:
    first, second = run([a for a, _ in pairs]), run([b for _, b in pairs])
    there, back = compare(first, second), compare(second, first)
    assert there.p_value == back.p_value
    assert there.difference == -(back.difference or 0.0)
    assert len(there.better) == len(back.worse)
    assert 0 < (there.p_value or 0) <= 1
