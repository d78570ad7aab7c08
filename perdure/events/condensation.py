"""Condensations of the agent's view."""

from typing import Any, Literal

from perdure.events.base import ActorEvent, EventBase
from perdure.wording import count


class CondensationRequest(ActorEvent):
    """The view must shrink before the model is asked again."""

    kind: Literal["CondensationRequest"] = "CondensationRequest"

    def describe(self) -> tuple[str, str]:
        return self.source, "asked for less in view"

    def export_note(self) -> str:
        return "The agent's view was to be made smaller."


class Condensation(EventBase):
    """Events left the view; `summary` takes their place, at `summary_offset` of what is left."""

    kind: Literal["Condensation"] = "Condensation"
    forgotten_event_ids: tuple[str, ...] = ()
    summary: str | None = None
    summary_offset: int | None = None
    llm_response_id: str | None = None
    forgotten_seqs: tuple[tuple[int, int], ...] | None = None
    """The same events as ranges of slots, first and last, for readers without ids; slots that no
    model is ever shown may lie in a range too.
    """
    forgotten_size: int | None = None
    """The estimated tokens of these events."""
    summary_size: int | None = None
    """The estimated tokens of the summary."""

    def export_note(self) -> str:
        text = f"{count(len(self.forgotten_event_ids), 'event')} left the agent's view."
        return f"{text} In their place:\n{self.summary}" if self.summary else text

    def summary_fields(self) -> dict[str, Any]:
        value = {
            "count": len(self.forgotten_event_ids),
            "forgotten": [list(pair) for pair in self.forgotten_seqs or ()],
            "size": self.forgotten_size or 0,
            "summary": 0 if self.summary is None else self.summary_size or 1,
        }
        return {"value": value}


class CondensationSummaryEvent(EventBase):
    """A summary as the view shows it: made from a `Condensation`, never stored."""

    kind: Literal["CondensationSummaryEvent"] = "CondensationSummaryEvent"
    summary: str

    def model_text(self) -> str:
        return self.summary
