"""What the agent no longer sees, and why."""

from typing import Literal

from events.base import EventBase, Source


class CondensationRequest(EventBase):
    """The view must shrink before the model is asked again."""

    source: Source = "environment"
    kind: Literal["CondensationRequest"] = "CondensationRequest"


class Condensation(EventBase):
    """Events left the view; `summary` takes their place, at `summary_offset` of what is left."""

    source: Source = "environment"
    kind: Literal["Condensation"] = "Condensation"
    forgotten_event_ids: tuple[str, ...] = ()
    summary: str | None = None
    summary_offset: int | None = None
    llm_response_id: str | None = None


class CondensationSummaryEvent(EventBase):
    """A summary as the view shows it: made from a `Condensation`, never stored."""

    source: Source = "environment"
    kind: Literal["CondensationSummaryEvent"] = "CondensationSummaryEvent"
    summary: str
