"""Numbers and texts are formatted for people."""

from typing import Any

import pytest

from perdure.exports.report import formatting


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (formatting.count, 12345, "12,345"),
        (formatting.score, None, "—"),
        (formatting.score, 0.5, "0.500"),
        (formatting.score, -0.0, "0.000"),
        (formatting.score, 999.5, "999.500"),
        (formatting.score, 1000, "1,000"),
        (formatting.money, 0, "$0.0000"),
        (formatting.money, 0.00005, "$5.0e-05"),
        (formatting.money, 0.0001, "$0.0001"),
        (formatting.money, 0.01, "$0.0100"),
        (formatting.money, 1, "$1.00"),
        (formatting.money, 1234.5, "$1,234.50"),
        (formatting.duration, 59.9, "59.9 s"),
        (formatting.duration, 60, "1 min 0 s"),
        (formatting.duration, 3599, "59 min 59 s"),
        (formatting.duration, 3600, "1 h 0 min"),
        (formatting.p_value, None, "—"),
        (formatting.p_value, 0.00009, "< 0.0001"),
        (formatting.p_value, 0.0001, "0.0001"),
        (formatting.json_value, 0.25, "0.25"),
        (formatting.json_value, "ü", "ü"),
        (formatting.json_value, ["ü", None], '["ü", null]'),
    ],
)
def test_a_value_is_formatted(function: Any, value: Any, text: str) -> None:
    assert function(value) == text


def test_a_signed_score_shows_its_sign() -> None:
    assert formatting.score(0.5, signed=True) == "+0.500"
    assert formatting.score(2000, signed=True) == "+2,000"
    assert formatting.score_with_error(0.5, 0.1) == "0.500 ± 0.100"
    assert formatting.interval((-0.5, 0.5), signed=True) == "-0.500 to +0.500"
    assert (formatting.share(1, 4), formatting.share(1, 0)) == ("25.0 %", "—")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n b", "a b"),
        ("a" * 10, "a" * 10),
        ("a" * 11, "a" * 9 + "…"),
        ("a" + " " * 39, "a"),
        ("a" + " " * 40, "a…"),
        ("a" + " " * 38 + "b" + "c", "a b…"),
    ],
)
def test_a_text_becomes_a_line_of_at_most_ten_characters(text: str, line: str) -> None:
    assert formatting.shorten(text, 10) == line


def test_names_that_are_numbers_are_sorted_by_their_value_before_others() -> None:
    names = ["b", "10", "nan", "9", "1e1", "inf", "a"]
    expected = ["9", "10", "1e1", "a", "b", "inf", "nan"]
    assert sorted(names, key=formatting.number_first) == expected
