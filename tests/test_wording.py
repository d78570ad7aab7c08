"""Numbers with their nouns."""

import pytest

from perdure.wording import count


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (0, "event", None, "0 events"),
        (1, "event", None, "1 event"),
        (1, "history", "histories", "1 history"),
        (2, "history", "histories", "2 histories"),
        (1234567, "token", None, "1,234,567 tokens"),
    ],
)
def test_a_number_is_followed_by_its_noun(
    number: int, noun: str, plural: str | None, text: str
) -> None:
    assert count(number, noun, plural) == text
