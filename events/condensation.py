"""What the agent no longer sees, and why."""

from typing import Literal

from events.base import EventBase, Source


class CondensationRequest(EventBase):
    """The view must shrink before the model is asked again."""

    source: Source = "environment"
    kind: Literal["CondensationRequest"] = "CondensationRequest"


class Condensation(EventBase):
    """Events left the view; `summary` takes their place, at `summary_offset` of what is left.

    `forgotten_seqs` names the same events as ranges of slots, first and last, for those who hold
    no ids; what no model is ever shown may lie in a range too. `forgotten_size` estimates what
    they took of the prompt, in tokens, and `summary_size` what the summary takes.
    """

    source: Source = "environment"
    kind: Literal["Condensation"] = "Condensation"
    forgotten_event_ids: tuple[str, ...] = ()
    summary: str | None = None
    summary_offset: int | None = None
    llm_response_id: str | None = None
    forgotten_seqs: tuple[tuple[int, int], ...] | None = None
    forgotten_size: int | None = None
    summary_size: int | None = None


class CondensationSummaryEvent(EventBase):
    """A summary as the view shows it: made from a `Condensation`, never stored."""

    source: Source = "environment"
    kind: Literal["CondensationSummaryEvent"] = "CondensationSummaryEvent"
    summary: str
