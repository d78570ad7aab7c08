"""The contributions of people to a discussion whose workflow was lost: they still count."""

from collections.abc import Iterable

from perdure.agent.discussion.state import DiscussionState
from perdure.agent.discussion.steps import LoggedContribution
from perdure.events.discussion import MODERATOR, SYSTEM, DiscussionEvent

MAX_BALLOT_CHARS = 201
"""Characters of a ballot that are compared: no option has as many."""


def find_contributions(
    events: Iterable[DiscussionEvent], agents: Iterable[str]
) -> list[LoggedContribution]:
    """Return the contributions of people among the events."""
    others = {*agents, MODERATOR, SYSTEM}
    return [
        _to_contribution(event)
        for event in events
        if event.type in ("SPEECH", "VOTE") and event.speaker not in others
    ]


def apply_logged(state: DiscussionState, before: int | None = None) -> DiscussionState:
    """Apply the contributions that stand before a place in the log, or all of them."""
    due = [item for item in state.logged if before is None or item.sequence < before]
    if not due:
        return state
    people, speeches, ballots = dict.fromkeys(state.people), dict(state.speeches), state.ballots
    for item in due:
        people[item.speaker] = None
        if item.type == "SPEECH":
            speeches[item.speaker] = speeches.get(item.speaker, 0) + 1
        elif item.phase == state.outline.phases[state.phase].name:
            ballots = {**ballots, item.speaker: item.ballot}
    spoken = any(item.type == "SPEECH" for item in due)
    return state.model_copy(
        update={
            "people": tuple(people),
            "speeches": speeches,
            "ballots": ballots,
            "consensus": state.consensus and not spoken,
            "logged": state.logged[len(due) :],
        }
    )


def _to_contribution(event: DiscussionEvent) -> LoggedContribution:
    content = event.content if isinstance(event.content, dict) else {}
    id_ = (event.meta.model_extra or {}).get("contribution") if event.meta else None
    return LoggedContribution.model_validate(
        {
            "sequence": event.sequence,
            "type": event.type,
            "speaker": event.speaker,
            "phase": event.meta.phase if event.meta else None,
            "ballot": str(content.get("ballot", ""))[:MAX_BALLOT_CHARS],
            "id": id_ if isinstance(id_, str) else None,
        }
    )
