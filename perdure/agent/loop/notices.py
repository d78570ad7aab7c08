"""What a conversation tells others of: its turn has ended, or it waits for somebody."""

from typing import Literal, TypeAlias

from perdure.agent.loop.phase import describe_phase, find_phase
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.agent.loop.status import Status
from perdure.events.base import Frozen
from perdure.events.event import AnyEvent, agent_text
from perdure.events.status import Phase, StatusDetail
from perdure.events.waiting import QuestionEvent

MAX_TEXT_CHARS = 20_000
"""Characters of an answer in a notice; the log has all of it."""

NoticeKind: TypeAlias = Literal["turn_end", "question", "approval", "error"]

NOTICES: dict[str, NoticeKind] = {
    "finished": "turn_end",
    "waiting_for_answer": "question",
    "waiting_for_confirmation": "approval",
    "error": "error",
    "stuck": "error",
}
"""The notice of each status that a conversation may come to."""


class CallToApprove(Frozen):
    """An action that waits for an approval."""

    tool_name: str
    tool_call_id: str
    risk: str


class Notice(Frozen):
    """A change of status that others are told of, by the event that made it."""

    kind: NoticeKind
    status: Status
    phase: Phase
    detail: StatusDetail | None = None
    """What clients are told beside the status: the reason, a limit, a fault, a question."""
    turn: int
    title: str | None = None
    text: str = ""
    """The answer that ended the turn, up to `MAX_TEXT_CHARS`."""
    calls: tuple[CallToApprove, ...] = ()


def find_notice(before: State, after: State, event: AnyEvent) -> Notice | None:
    """Return the notice of an event between two states; None if it is none."""
    kind = NOTICES.get(after.status)
    if kind is None or (before.status, before.turn) == (after.status, after.turn):
        return None
    if kind == "turn_end" and not before.turn_open:
        return None
    if kind == "question" and not isinstance(event, QuestionEvent):  # it goes on after a pause
        return None
    shared = set(CallToApprove.model_fields)
    return Notice(
        kind=kind,
        status=after.status,
        phase=find_phase(after),
        detail=describe_phase(after),
        turn=after.turn,
        title=after.title or None,
        text=agent_text(event)[:MAX_TEXT_CHARS],
        calls=tuple(
            CallToApprove(**action.model_dump(include=shared))
            for action in actions_to_confirm(after)
        ),
    )
