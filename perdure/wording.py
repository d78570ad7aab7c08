"""Wording of messages to people."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun: `1 event`, `2,000 events`; `plural` is irregular."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
