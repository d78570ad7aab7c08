"""The standing of a conversation, for programs that talk MCP: its status, and what to do next."""

from pydantic import BaseModel

from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.client.protocol import ConversationHandle
from perdure.errors import NotFound
from perdure.events.status import describe_wait
from perdure.storage.log.state import read_answer

HINTS = {
    "running": "The agent is at work: call `wait`.",
    "waiting_for_confirmation": "Calls wait for a person: call `respond`, then `wait`.",
    "waiting_for_answer": "The agent asks `question`: call `send_message` with the answer.",
    "waiting": "It waits for a time or a signal, as `waits` says: call `wait`, or `send_message`.",
    "paused": 'It is paused: call `control` with "resume", or `send_message`.',
    "idle": 'It waits: call `send_message`, or `control` with "resume".',
    "error": 'The turn failed, as `reason` says: call `send_message`, or `control` with "resume".',
    "stuck": "The agent repeats itself: call `send_message` and say what to do instead.",
    "closed": "It is closed: `send_message` opens it again.",
    "finished": "The turn is over, and `answer` is what the agent said.",
}
"""What to do next, by the status."""

NOT_BEGUN_HINT = "No worker has taken it up yet: call `wait`."


class WaitingCall(BaseModel):
    """A tool call that waits for a person."""

    call_id: str
    tool: str
    risk: str


class Standing(BaseModel):
    """The standing of a conversation."""

    conversation_id: str
    status: str
    reason: str | None = None
    title: str | None = None
    last_seq: int
    """The slot of the newest event; `get_events` reads those after one."""
    answer: str = ""
    """What the agent said last in its last turn."""
    pending: list[WaitingCall] = []
    """The calls that wait for a person."""
    question: str | None = None
    """The question that the agent asks, with its choices."""
    waits: str | None = None
    """The time or the signal that the agent waits for."""
    hint: str
    """What to do next."""


async def read_standing(conversation: ConversationHandle) -> Standing:
    """Read where a conversation stands. Raises ClientError, StoreError."""
    if await conversation.log.end() == 0:
        if not await conversation.exists():
            raise NotFound.for_conversation(conversation.id)
        return Standing(
            conversation_id=conversation.id, status="idle", last_seq=-1, hint=NOT_BEGUN_HINT
        )
    status, state = await conversation.status(), await conversation.state()
    if status.next_seq < state.next_seq:  # the workflow is a moment behind the log
        trouble = status.trouble
        status = build_status(conversation.id, state).model_copy(update={"trouble": trouble})
    return Standing(
        conversation_id=conversation.id,
        status=status.status,
        reason=status.reason,
        title=status.title,
        last_seq=status.next_seq - 1,
        answer=await read_answer(conversation.log, state),
        pending=list_waiting(status),
        question=_describe_question(status),
        waits=_describe_wait(status),
        hint=status.trouble or HINTS[status.status],
    )


def _describe_question(status: ConversationStatus) -> str | None:
    wait = status.detail.wait if status.detail else None
    if wait is None or wait.question is None:
        return None
    return "\n".join([wait.question, *(f"* {choice}" for choice in wait.choices)])


def _describe_wait(status: ConversationStatus) -> str | None:
    wait = status.detail.wait if status.detail else None
    if wait is None or wait.question is not None:
        return None
    return describe_wait(wait.until, wait.signal)


def list_waiting(status: ConversationStatus) -> list[WaitingCall]:
    return [
        WaitingCall(call_id=call.tool_call_id, tool=call.tool_name, risk=call.risk)
        for call in status.pending
        if call.asks
    ]
