"""The state of a conversation as its log tells it, with no workflow at hand."""

from agent.state import State, fold
from events.projection import digest
from storage.log import EventLog


async def state_of(log: EventLog, before_run: str | None = None) -> State:
    """Fold the log, from the kept state on where there is one.

    With `before_run`, only up to the first event which that workflow run wrote.
    """
    state = await _kept(log)
    end = await log.end(hint=state.next_seq)
    if end < state.next_seq:  # the kept state knows of events that are gone: do not believe it
        state = State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    upto = next((entry.seq for entry in entries if entry.origin.run == before_run), end)
    return fold(state, [digest(entry) for entry in entries if entry.seq < upto])


async def _kept(log: EventLog) -> State:
    kept = await log.load_state()
    return State.model_validate_json(kept) if kept is not None else State()
