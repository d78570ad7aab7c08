"""Wording of messages to people."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun: `1 event`, `2,000 events`; `plural` is irregular."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shorten(text: str, length: int = 80) -> str:
    """Return the beginning of what a person or a program has sent, for a message about it."""
    return text if len(text) <= length else f"{text[:length]}…"
