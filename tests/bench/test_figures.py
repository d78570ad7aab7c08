"""The benches' statistics, by figures that are reckoned by hand."""

import pytest

from bench.figures import (
    Spread,
    compare_runs,
    compare_with_floor,
    measure_drift,
    measure_spread,
    median_row,
    percentile,
    split_by_tenths,
)


def test_a_spread_has_the_median_and_both_ends() -> None:
    assert measure_spread([4.0, 1.0, 2.0, 9.0, 3.0]) == Spread(3.0, 1.0, 9.0)


def test_a_spread_reads_as_the_median_and_its_range() -> None:
    assert str(Spread(1.2345, 1.0, 2.0)) == "1.23 (1.00 to 2.00)"


def test_each_run_is_paired_with_the_mean_of_the_floors_on_both_its_sides() -> None:
    ratio = compare_with_floor([30.0, 60.0, 20.0], [10.0, 20.0, 10.0], [20.0, 40.0, 10.0])
    assert ratio.paired == Spread(2.0, 2.0, 2.0)


def test_the_ratio_of_medians_counts_the_floors_of_both_sides() -> None:
    ratio = compare_with_floor([30.0, 60.0, 20.0], [10.0, 10.0, 10.0], [10.0, 40.0, 40.0])
    assert ratio.medians == 3.0


def test_the_ratio_of_medians_hides_no_pair_that_differs() -> None:
    ratio = compare_runs([10.0, 20.0, 40.0], [10.0, 10.0, 80.0])
    assert (ratio.medians, ratio.paired) == (2.0, Spread(1.0, 0.5, 2.0))


def test_runs_without_their_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compare_with_floor([1.0, 2.0], [1.0, 1.0], [1.0])


@pytest.mark.parametrize(("share", "figure"), [(0.5, 50), (0.95, 95), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_the_least_figure_that_so_many_do_not_exceed(
    share: float, figure: float
) -> None:
    assert percentile(list(range(100, 0, -1)), share) == figure


def test_the_percentiles_of_one_figure_are_that_figure() -> None:
    assert [percentile([7.0], share) for share in (0.5, 0.95)] == [7.0, 7.0]


def test_the_medians_of_rows_are_those_of_each_column() -> None:
    rows = [{"a": 1.0, "b": 9.0}, {"a": 3.0, "b": 7.0}, {"a": 2.0, "b": 8.0}]
    assert median_row(rows) == {"a": 2.0, "b": 8.0}


def test_a_steady_cost_is_the_same_in_every_tenth() -> None:
    steps = [float(nth) for nth in range(21)]
    tenths = split_by_tenths(steps, [-1.0, 25.0], [0.0, 52.0])
    assert tenths == pytest.approx([2.0] * 10)


def test_a_step_that_costs_three_times_as_much_at_the_end_drifts_by_three() -> None:
    steps = [float(nth) for nth in range(101)]
    used = [0.0]
    for nth in range(100):
        used.append(used[-1] + (3.0 if nth >= 90 else 1.0))
    tenths = split_by_tenths(steps, steps, used)
    assert tenths == pytest.approx([1.0] * 9 + [3.0])
    assert measure_drift(tenths) == pytest.approx(3.0)


def test_tenths_of_unequal_numbers_of_steps_are_by_the_step() -> None:
    steps = [float(nth) for nth in range(26)]
    assert split_by_tenths(steps, steps, steps) == pytest.approx([1.0] * 10)


def test_the_cost_between_two_samples_is_on_the_line_between_them() -> None:
    steps = [nth / 10 for nth in range(11)]
    tenths = split_by_tenths(steps, [0.0, 0.5, 1.0], [0.0, 5.0, 15.0])
    assert tenths == pytest.approx([1.0] * 5 + [2.0] * 5)


def test_too_few_steps_for_tenths_are_refused() -> None:
    with pytest.raises(ValueError, match="10 steps have no tenths: 11 are the fewest"):
        split_by_tenths([float(nth) for nth in range(10)], [0.0, 1.0], [0.0, 1.0])
