"""Recording requests as the activity `log.append` does."""

from perdure.activities.support.inbox_events import to_event
from perdure.agent.loop.decide import decide
from perdure.agent.loop.inbox import InboxItem, Rejection
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Record
from perdure.events.event import AnyEvent
from tests.builders import TIMESTAMP, apply_events, rejection


def events_of_step(state: State, step: Record) -> list[AnyEvent]:
    """Return the events that `log.append` writes for the step, without recalls."""
    assert state.spec is not None
    refusal = step.refusal
    events = _rejections(state, refusal.action_seqs, refusal.run) if refusal else []
    for item in step.items:
        if isinstance(item, Rejection):
            events += _rejections(state, item.actions, item.run)
        else:
            events.append(to_event(item, TIMESTAMP, state.spec))
    return events


def apply_requests(state: State, *items: InboxItem) -> State:
    """Return the state once all requests are recorded."""
    waiting = list(items)
    while waiting:
        [step] = decide(state, waiting)
        assert isinstance(step, Record)
        state = apply_events(state, *events_of_step(state, step))
        del waiting[: step.from_inbox]
    return state


def record_next(state: State) -> State:
    """Return the state once the item of the next step is recorded."""
    [step] = decide(state, ())
    assert isinstance(step, Record)
    assert step.from_inbox == 0
    return apply_events(state, *events_of_step(state, step))


def _rejections(state: State, actions: tuple[int, ...], run: bool) -> list[AnyEvent]:
    """Reject the actions that are still pending; without `run` the agent then rests."""
    pending = {item.seq: item for item in state.pending}
    events = [
        rejection(pending[seq].action_id, pending[seq].tool_name, pending[seq].tool_call_id)
        for seq in actions
        if seq in pending
    ]
    return [event.model_copy(update={"run": None if run else False}) for event in events]
