"""The size of the view, which each event changes."""

from typing import Any

from perdure.agent.loop.state import State
from perdure.agent.loop.stuck import RESULT_KINDS
from perdure.agent.view.seq_ranges import merge_ranges
from perdure.events.summary import EventSummary

PROMPT_KINDS = ("SystemPromptEvent", "MessageEvent", "RecallEvent", "ActionEvent", *RESULT_KINDS)
"""The events that become part of the model's prompt."""


def update_view(state: State, event: EventSummary) -> dict[str, Any]:
    """Add the event to the size of the view, or subtract the events that it condenses."""
    if event.kind == "Condensation":
        if event.value is None:  # of a newer writer: an unreadable event leaves the view as it is
            return {}
        summary = event.value["summary"]
        return {
            "view_events": max(0, state.view_events - event.value["count"] + (summary > 0)),
            "view_tokens": max(0, state.view_tokens - event.value["size"] + summary),
            "forgotten_seqs": merge_ranges(state.forgotten_seqs, event.value["forgotten"]),
        }
    if event.kind not in PROMPT_KINDS:
        return {}
    return {"view_events": state.view_events + 1, "view_tokens": state.view_tokens + event.tokens}
