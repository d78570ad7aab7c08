"""A distribution of numbers is summarized in little memory."""

import pytest

from perdure.exports.report.plots import Distribution, histogram_plot


def test_a_spread_keeps_few_numbers_and_is_right() -> None:
    spread = Distribution()
    for at in range(60_000):
        spread.add((at * 7919 % 60_000) / 1000)
    assert len(spread._counts) <= 5000
    assert spread.quantile(0.5) == pytest.approx(30, abs=0.02)
    assert spread.quantile(0.9) == pytest.approx(54, abs=0.02)
    bins, beyond = spread.histogram()
    assert sum(item.frequency for item in bins) + beyond == 60_000
    assert all(
        item.frequency == pytest.approx(5000 * (item.high - item.low) / 5, abs=60)
        for item in bins[:-1]
    )


def test_what_lies_far_out_does_not_hide_the_rest() -> None:
    spread = Distribution()
    for at in range(1000):
        spread.add(1 + at / 1000)
    spread.add(1_000_000)
    bins, beyond = spread.histogram()
    assert len(bins) > 10
    assert beyond + sum(item.frequency for item in bins) == 1001
    assert spread.highest == 1_000_000


@pytest.mark.parametrize("values", [[0.0], [3.0] * 9, [1e-9], [1e12, 1], [0, 0, 0, 5]])
def test_any_numbers_have_a_histogram(values: list[float]) -> None:
    spread = Distribution(whole=all(value == int(value) for value in values))
    for value in values:
        spread.add(value)
    bins, beyond = spread.histogram()
    assert sum(item.frequency for item in bins) + beyond == len(values)
    assert len(bins) < 100


def test_the_labels_of_a_histogram_begin_at_its_lowest_number_and_end_with_the_outliers() -> None:
    spread = Distribution(whole=True)
    for value in (2, 2, 3, 4, 5):
        spread.add(value)
    plot = histogram_plot(spread, "{:.0f}".format)
    assert [column.label for column in plot.columns] == ["2", "3", "4", "5"]
    assert [text for text, _, _ in plot.labels] == ["2", "3", "4", "5"]
    positions = [x for _, x, _ in plot.labels]
    assert positions == sorted(positions)
    for _ in range(1000):
        spread.add(3)
    spread.add(1_000_000)
    *labels, outliers = histogram_plot(spread, "{:.0f}".format).labels
    assert labels[0][0] == "2"
    assert outliers[0].startswith("≥ ")
