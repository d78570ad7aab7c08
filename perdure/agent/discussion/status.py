"""The status of a discussion, for programs and for the Temporal UI."""

from typing import Literal

from perdure.agent.discussion.decide import phase_of
from perdure.agent.discussion.spec import DiscussionKey, Phase
from perdure.agent.discussion.state import DiscussionState, DiscussionStatus

MAX_SHOWN_CHARS = 2000


def status_of(
    key: DiscussionKey,
    state: DiscussionState | None,
    speaking: tuple[str, ...] = (),
    is_paused: bool = False,
    is_closed: bool = False,
) -> DiscussionStatus:
    log = f"users/{key.user_id}/discussions/{key.session_id}/"
    if state is None:
        return DiscussionStatus(session_id=key.session_id, status="opening", log=log)
    status: Literal["running", "paused", "finished", "closed"] = "running"
    if is_closed:
        status = "closed"
    elif state.stage == "over":
        status = "finished"
    elif is_paused:
        status = "paused"
    return DiscussionStatus(
        session_id=key.session_id,
        status=status,
        reason=state.ending,
        phase=phase_of(state).name,
        round=state.round,
        speaking=speaking,
        events=state.end,
        speeches=state.speeches,
        tally=state.tally,
        summary=state.summary,
        cost=state.cost,
        tokens=sum(state.tokens.values()),
        log=log,
    )


def describe_status(status: DiscussionStatus, phase: Phase | None) -> str:
    """Return the status as markdown."""
    reason = f" ({status.reason})" if status.reason else ""
    rounds = f", round {status.round} of {phase.rounds}" if phase else ""
    tally = status.tally
    counts = ", ".join(
        f"{name} {number}" for name, number in (tally.counts if tally else {}).items()
    )
    lines = {
        "status": f"**{status.status}**{reason}",
        "phase": f"{status.phase}{rounds}" if status.phase else None,
        "speaking": ", ".join(status.speaking),
        "speeches": ", ".join(f"{name} {number}" for name, number in status.speeches.items()),
        "events": status.events or None,
        "vote": f"{counts}; winner: {tally.winner or 'none'}" if tally else None,
        "summary": " ".join((status.summary or "").split())[:MAX_SHOWN_CHARS],
        "tokens": f"{status.tokens:,}" if status.tokens else None,
        "cost": f"${status.cost:.4f}",
        "log": status.log,
    }
    return "\n".join(f"- {name}: {value}" for name, value in lines.items() if value)
