"""The questions of agents, and what a person says to them."""

from collections.abc import Sequence

from perdure.events.status import WaitDetail, describe_time


def find_choice(text: str, choices: Sequence[str]) -> str | None:
    """Return the choice that a text names in its words, or by its number; None for other words."""
    word = text.strip()
    named = next((choice for choice in choices if choice.lower() == word.lower()), None)
    if named is None and word.isdecimal() and 1 <= int(word) <= len(choices):
        return choices[int(word) - 1]
    return named


def describe_question(wait: WaitDetail) -> list[str]:
    """Describe a question in lines: what is asked, the numbered choices, until when."""
    choices = (f"  {number}. {choice}" for number, choice in enumerate(wait.choices, 1))
    until = [f"  (until {describe_time(wait.until)})"] if wait.until else []
    return [*(wait.question or "").split("\n"), *choices, *until]
