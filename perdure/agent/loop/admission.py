"""The question whether a conversation is about to work, for a limit on those that do at once."""

from collections.abc import Sequence

from perdure.agent.loop.inbox import (
    Approval,
    CloseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    Rejection,
    ResumeRequest,
    TurnFailure,
    UserMessage,
)
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.agent.loop.status import Status, next_status


def will_run(state: State, inbox: Sequence[InboxItem]) -> bool:
    """Tell whether the conversation is running once these items are recorded."""
    status, turn_open = state.status, state.turn_open
    unconfirmed = {action.seq for action in actions_to_confirm(state)}
    for item in inbox:
        match item:
            case UserMessage():
                status, turn_open, unconfirmed = next_status(status, "message"), True, set()
            case ResumeRequest():
                status = next_status(status, "resume" if turn_open else "rest")
            case Approval() | Rejection():
                unconfirmed = unconfirmed.difference(item.actions)
                status = status if unconfirmed else next_status(status, "respond")
            case _:
                status = _stop(status, item)
    return status == "running"


def _stop(status: Status, item: InboxItem) -> Status:
    match item:
        case PauseRequest():
            return next_status(status, "pause")
        case InterruptRequest():
            return next_status(status, "interrupt")
        case TurnFailure():
            return next_status(status, "failure")
        case CloseRequest():
            return next_status(status, "close")
    return status


def until_suspended(inbox: Sequence[InboxItem]) -> Sequence[InboxItem]:
    """Return the items up to the first request to suspend the conversation, or all.

    What comes behind it asks for admission anew, once the conversation is at rest.
    """
    for nth, item in enumerate(inbox):
        if isinstance(item, InterruptRequest) and item.reason is not None:
            return inbox[: nth + 1]
    return inbox
