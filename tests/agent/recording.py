"""What people ask for, as the step that records it would put it into the log."""

from activities.items import event_of
from agent.decide import decide
from agent.inbox import Item, Rejected
from agent.state import State
from agent.steps import Record
from events.event import AnyEvent
from tests.builders import WHEN, after, rejection


def recorded(state: State, step: Record) -> list[AnyEvent]:
    """What `log.append` writes for the step, but for what messages call up."""
    assert state.spec is not None
    events = _rejections(state, step.refusal.actions) if step.refusal else []
    for item in step.items:
        if isinstance(item, Rejected):
            events += _rejections(state, item.actions)
        else:
            events.append(event_of(item, WHEN, state.spec))
    return events


def asked(state: State, *items: Item) -> State:
    """The state once all of this has been asked for and recorded."""
    waiting = list(items)
    while waiting:
        [step] = decide(state, waiting)
        assert isinstance(step, Record)
        state = after(state, *recorded(state, step))
        del waiting[: step.taken]
    return state


def noted(state: State) -> State:
    """The state once it is on record what the next step notes by itself."""
    [step] = decide(state, ())
    assert isinstance(step, Record)
    assert step.taken == 0
    return after(state, *recorded(state, step))


def _rejections(state: State, actions: tuple[int, ...]) -> list[AnyEvent]:
    """Those that were answered meanwhile stay as they are."""
    pending = {one.seq: one for one in state.pending}
    return [
        rejection(pending[seq].action_id, pending[seq].tool_name, pending[seq].tool_call_id)
        for seq in actions
        if seq in pending
    ]
