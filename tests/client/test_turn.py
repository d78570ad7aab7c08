"""The growth of a text of which only the end is known."""

import pytest

from perdure.client.turn import find_growth


@pytest.mark.parametrize(
    ("sent", "newest", "growth"),
    [
        ("", "abc", "abc"),
        ("abc", "abcdef", "def"),
        ("abcdef", "defgh", "gh"),
        ("abc", "abc", ""),
        ("abab", "ababab", "ab"),
    ],
)
def test_growth_is_found_in_a_text_of_which_only_the_end_is_known(
    sent: str, newest: str, growth: str
) -> None:
    assert find_growth(sent, newest) == growth
