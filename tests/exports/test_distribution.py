"""A distribution of numbers is summarized in little memory."""

import pytest

from perdure.exports.report.plots import Distribution


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
