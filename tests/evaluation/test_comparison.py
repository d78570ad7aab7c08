"""Tests of the comparison of two runs."""

from math import sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.evaluation.comparison import compare, run_paired_test
from perdure.evaluation.seeded_random import integers


def run(values: list[float]) -> dict[str, float]:
    return {f"s{number:04}": value for number, value in enumerate(values)}


def draw_differences(name: str, count: int, better: float, worse: float) -> list[float]:
    """Draw differences of scores of 0 and 1, of which these shares are better and worse."""
    shares = (number / 2**64 for number in integers(name, count))
    return [1.0 if share < better else -1.0 if share < better + worse else 0.0 for share in shares]


@pytest.mark.parametrize("count", [5, 12, 30, 100])
@pytest.mark.parametrize("changed", [0.02, 0.1, 0.3])
def test_noise_is_called_a_difference_in_at_most_a_twentieth_of_cases(
    count: int, changed: float
) -> None:
    runs = [draw_differences(f"noise {nth}", count, changed, changed) for nth in range(800)]
    significant = sum(run_paired_test(differences).p_value < 0.05 for differences in runs)
    assert significant / 800 <= 0.05 + 3 * sqrt(0.05 * 0.95 / 800)


@pytest.mark.parametrize("count", [10, 30, 100])
@pytest.mark.parametrize(("better", "worse"), [(0.3, 0.1), (0.5, 0.05), (0.1, 0.1)])
def test_the_interval_has_the_true_difference_in_19_of_20_cases(
    count: int, better: float, worse: float
) -> None:
    runs = [draw_differences(f"change {nth}", count, better, worse) for nth in range(800)]
    intervals = [run_paired_test(differences).interval for differences in runs]
    covered = sum(ends.low <= better - worse <= ends.high for ends in intervals)
    assert covered / 800 >= 0.95 - 3 * sqrt(0.05 * 0.95 / 800)


def test_a_large_difference_is_found() -> None:
    runs = [draw_differences(f"effect {nth}", 30, 0.5, 0.05) for nth in range(200)]
    assert sum(run_paired_test(differences).p_value < 0.05 for differences in runs) > 180


@given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=40))
@example([-1.0] * 8 + [1.0] * 2 + [0.0] * 20)  # whose plain interval is without 0
@example([1.0] * 6 + [0.0] * 24)
def test_verdict_and_interval_never_disagree(differences: list[float]) -> None:
    interval, p_value = run_paired_test(differences)
    assert (p_value < 0.05) == (interval.low > 0 or interval.high < 0)
    assert interval.low <= interval.high


def test_two_pairs_with_the_same_change_are_no_proof() -> None:
    assert run_paired_test([0.1, 0.1]).p_value > 0.3


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
    assert comparison.pairs == 4
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


def test_only_samples_of_both_runs_are_compared() -> None:
    comparison = compare({"a": 1.0, "b": 1.0}, {"b": 0.0, "c": 1.0})
    assert (comparison.pairs, comparison.only_before, comparison.only_after) == (1, ("a",), ("c",))
    assert (comparison.difference, comparison.standard_error) == (-1.0, None)
    assert not comparison.significant


def test_runs_with_no_sample_in_common_cannot_be_compared() -> None:
    comparison = compare({"a": 1.0}, {"b": 1.0})
    assert (comparison.pairs, comparison.p_value) == (0, None)
    assert not comparison.significant


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_swapping_the_runs_negates_the_difference(pairs: list[tuple[float, float]]) -> None:
    first, second = run([a for a, _ in pairs]), run([b for _, b in pairs])
    there, back = compare(first, second), compare(second, first)
    assert there.p_value == pytest.approx(back.p_value)
    assert there.difference == -(back.difference or 0.0)
    assert len(there.better) == len(back.worse)
    assert 0 < (there.p_value or 0) <= 1
