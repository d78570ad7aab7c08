"""The status of a conversation by its log alone."""

from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.events.status import Phase, StatusDetail
from perdure.storage.errors import explain_read_only
from perdure.storage.log.fork import is_new_fork
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_until_damage

FORKED_REASON = "forked in the middle of a turn: resume it, or send a message"
"""The reason of a fork that nobody has begun."""


async def read_logged_status(log: ReadableLog) -> ConversationStatus | None:
    """Read the status from the log, even a damaged one; return None if the log is empty."""
    state, damage = await read_state_until_damage(log)
    status = build_status(log.conversation_id, state)
    if damage is not None:
        reason = explain_read_only(log.conversation_id, damage)
        return _replace(status, "error", reason)
    if state.status == "running" and await is_new_fork(log, state.next_seq):
        return _replace(status, "idle", FORKED_REASON)
    return status if state.next_seq else None


def _replace(status: ConversationStatus, phase: Phase, reason: str) -> ConversationStatus:
    detail = StatusDetail(reason=reason)
    return status.model_copy(
        update={"status": phase, "phase": phase, "reason": reason, "detail": detail}
    )
