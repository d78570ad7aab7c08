"""The question whether a conversation is about to work, for a limit on those that do at once."""

from collections.abc import Collection, Sequence

from perdure.agent.loop.decide import refuse_pending
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
from perdure.agent.loop.status import Status, Trigger, next_status


def will_run(state: State, inbox: Sequence[InboxItem]) -> bool:
    """Tell whether the conversation is running once these items are recorded."""
    status, turn_open = state.status, state.turn_open
    unconfirmed = {action.seq for action in actions_to_confirm(state)}
    pending = {action.seq for action in state.pending}
    if (refusal := refuse_pending(state, inbox)) is not None:  # it is recorded before all items
        unconfirmed = unconfirmed.difference(refusal.action_seqs)
        pending = pending.difference(refusal.action_seqs)
        status = status if unconfirmed else next_status(status, _end(refusal.run, pending))
    for item in inbox:
        match item:
            case UserMessage():
                status = next_status(status, "message" if item.run else "record")
                turn_open, unconfirmed = True, set()
            case ResumeRequest():
                status = next_status(status, "resume" if turn_open else "rest")
            case Approval() | Rejection():
                unconfirmed = unconfirmed.difference(item.actions)
                run = True
                if isinstance(item, Rejection):
                    pending, run = pending.difference(item.actions), item.run
                status = status if unconfirmed else next_status(status, _end(run, pending))
            case _:
                status = _stop(status, item)
    return status == "running"


def _end(run: bool, pending: Collection[int]) -> Trigger:
    """Return what the end of the wait for a person does; without `run` the agent may rest."""
    return "respond" if run or pending else "reject"


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
