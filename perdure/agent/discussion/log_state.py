"""The state of a shared log as a fold of its events: who may write next, and what is visible."""

from collections.abc import Iterable

from pydantic import Field

from perdure.errors import Forbidden
from perdure.events.base import Tolerant
from perdure.events.discussion import (
    MODERATOR,
    SYSTEM,
    DiscussionEvent,
    DiscussionEventType,
)

OPENED = "OPENED"
"""The action that names the agents of a session: from then on others write nothing."""
JOINED = "JOINED"
"""The action that adds an agent or a person."""
GRANT = "GRANT"
"""The action by which the moderator lets `speaker` give one SPEECH."""
PASSED_OVER = "PASSED_OVER"
"""The action that records that `speaker` failed or was silent; an open grant ends."""
PHASE_TRANSITION = "PHASE_TRANSITION"
END = "end"
"""The phase to which the last one leads in a PHASE_TRANSITION."""
CLOSED = "CLOSED"

_TYPES_OF_AGENTS = ("INTENT", "SPEECH", "VOTE")
_WRITERS = {
    "INTENT": "an agent",
    "SPEECH": "an agent to whom the moderator has granted it",
    "SUMMARY": "the moderator",
    "VOTE": "an agent or the system",
    "SYSTEM": "the system",
}


class LogState(Tolerant):
    """The fold of the events up to `end`, the prunings up to `prunings` included."""

    end: int = 0
    """The sequence of the newest event; 0 if there is none."""
    sha: str = ""
    """The hash of the newest event as stored."""
    speakers: tuple[str, ...] | None = None
    """Agents and people of the session; None if it was never opened, and takes any."""
    grants: dict[str, int] = Field(default_factory=dict)
    """Open grants by speaker."""
    visible: tuple[tuple[int, DiscussionEventType], ...] = ()
    prunings: int = 0


def apply_events(state: LogState, events: Iterable[tuple[DiscussionEvent, str]]) -> LogState:
    """Apply the next events, each with the hash of what is stored."""
    end, last_sha, speakers = state.end, state.sha, state.speakers
    grants, visible = dict(state.grants), list(state.visible)
    for event, sha in events:
        assert event.sequence == end + 1, "a log has no gaps"
        end, last_sha = event.sequence, sha
        visible.append((event.sequence, event.type))
        _count_grants(grants, event)
        match event.action:
            case "OPENED":
                names = event.details.get("agents")
                speakers = tuple(map(str, names)) if isinstance(names, list) else speakers
            case "JOINED" if speakers is not None:
                speakers = tuple(dict.fromkeys((*speakers, str(event.details.get("speaker")))))
    return state.model_copy(
        update={
            "end": end,
            "sha": last_sha,
            "speakers": speakers,
            "grants": grants,
            "visible": tuple(visible),
        }
    )


def apply_pruning(state: LogState, number: int, sequences: Iterable[int]) -> LogState:
    """Take the events of these sequences out of the visible ones."""
    gone = set(sequences)
    visible = tuple(item for item in state.visible if item[0] not in gone)
    return state.model_copy(update={"visible": visible, "prunings": number})


def check_writer(state: LogState, type_: DiscussionEventType, speaker: str) -> None:
    """Raise Forbidden if the speaker may not write an event of this type now."""
    if speaker == SYSTEM:
        allowed = type_ in ("SYSTEM", "VOTE")
    elif speaker == MODERATOR:
        allowed = type_ == "SUMMARY"
    else:
        allowed = type_ in _TYPES_OF_AGENTS
    if not allowed:
        raise Forbidden(
            f"{speaker} may not write a {type_}: only {_WRITERS[type_]} writes one.",
        )
    is_reserved = speaker in (SYSTEM, MODERATOR)
    if not is_reserved and state.speakers is not None and speaker not in state.speakers:
        raise Forbidden(f"{speaker} takes no part in this session.", _list_speakers(state))
    if type_ == "SPEECH" and not state.grants.get(speaker):
        raise Forbidden(
            f"{speaker} has no grant to speak.",
            "A SYSTEM event with the action GRANT and the details {speaker} grants one SPEECH.",
        )


def is_over(event: DiscussionEvent) -> bool:
    """Tell whether nothing follows the event of a discussion that perdure runs."""
    if event.action == PHASE_TRANSITION:
        return event.details.get("to") == END
    return event.action == CLOSED


def _list_speakers(state: LogState) -> str:
    return f"There are {', '.join(state.speakers or ())}."


def _count_grants(grants: dict[str, int], event: DiscussionEvent) -> None:
    speaker = str(event.details.get("speaker"))
    if event.action == GRANT:
        grants[speaker] = grants.get(speaker, 0) + 1
    elif event.action == PASSED_OVER:
        grants.pop(speaker, None)
    elif event.type == "SPEECH":
        left = grants.get(event.speaker, 0) - 1
        grants.pop(event.speaker, None)
        if left > 0:
            grants[event.speaker] = left
