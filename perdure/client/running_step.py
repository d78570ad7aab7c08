"""A running step of a conversation, as its clients see it."""

from typing import NamedTuple

STEP_POLL_INTERVAL = 0.25
"""Seconds between two polls of running steps: as often as they heartbeat."""


class RunningStep(NamedTuple):
    """A running step, such as `llm.chat` or `tool.call`.

    The events that it appends have `run_id` and `activity_id` as their origin.
    """

    kind: str
    activity_id: str
    attempt: int
    text: str
    """The end of this attempt's output so far; a new attempt starts with none."""
    run_id: str
    failure: str | None = None
    """The reason why the attempt before failed."""
    offset: int | None = None
    """The number of characters before the text; None if the worker does not say."""
