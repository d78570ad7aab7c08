"""The status of a discussion as its log has it, where no workflow answers."""

from typing import Any, Literal

from pydantic import ValidationError

from perdure.agent.discussion.log_state import CLOSED, is_over
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.tally import Tally
from perdure.events.discussion import SYSTEM, DiscussionEvent
from perdure.storage.discussions.shared_log import SharedLog, select_visible

LOOKED_AT = 100
"""The newest visible events among which the last summary and tally are looked for."""


async def read_status(log: SharedLog) -> DiscussionStatus:
    """Read the status from the newest events. Raises Missing, Damaged, Altered."""
    state = await log.refresh()
    events = await log.read(select_visible(state, LOOKED_AT, ("SUMMARY", "VOTE", "SYSTEM")))
    summaries = [event.text for event in events if event.type == "SUMMARY"]
    tallies = [event.content for event in events if (event.type, event.speaker) == ("VOTE", SYSTEM)]
    newest = (await log.read([state.end]))[0] if state.end else None
    phase = newest.meta.phase if newest and newest.meta else None
    return DiscussionStatus(
        session_id=log.session_id,
        status=_status(newest),
        phase=phase,
        events=state.end,
        summary=summaries[-1] if summaries else None,
        tally=_parse_tally(tallies[-1]) if tallies else None,
        log=log.prefix,
    )


def _status(newest: DiscussionEvent | None) -> Literal["opening", "running", "finished", "closed"]:
    if newest is None:
        return "opening"
    if not is_over(newest):
        return "running"
    return "closed" if newest.action == CLOSED else "finished"


def _parse_tally(content: Any) -> Tally | None:
    try:
        return Tally.model_validate(content)
    except ValidationError:  # a vote that some program tallied
        return None
