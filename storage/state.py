"""The state of a conversation as its log tells it, with no workflow at hand."""

from pydantic import ValidationError

from agent.evolve import fold
from agent.state import State
from events.entry import Entry
from events.projection import digest
from storage.errors import Damaged, Missing
from storage.keys import LAST_SEQ
from storage.reader import LogReader


async def state_of(log: LogReader, before_run: str | None = None) -> State:
    """Fold the log, from the kept state on where there is one.

    With `before_run`, only up to the first event which that workflow run wrote, and from the first
    event on: the kept state may have been kept behind it.
    """
    state = await kept_state(log) if before_run is None else State()
    end = await log.end(hint=state.next_seq)
    if end < state.next_seq:  # the kept state knows of events that are gone: do not believe it
        state = State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    upto = next((entry.seq for entry in entries if entry.origin.run == before_run), end)
    return fold(state, [digest(entry) for entry in entries if entry.seq < upto])


async def legible_state(log: LogReader) -> tuple[State, Missing | Damaged | None]:
    """As `state_of`, up to the first slot that cannot be read, and what is wrong with that one.

    Slots that the kept state tells of are not looked at, but counted.
    """
    state = await kept_state(log)
    end = await log.end(hint=state.next_seq)
    if end < state.next_seq:
        return state, Missing(end, (await log.lineage())[0].key(end))
    for slot in await log.readable(state.next_seq, end - state.next_seq):
        if not isinstance(slot, Entry):
            return state, slot
        state = fold(state, [digest(slot)])
    return state, None


async def state_at(log: LogReader, end: int) -> State:
    """Fold the first `end` slots alone. Raises Missing and Damaged."""
    state = await kept_state(log)
    if state.next_seq > end:
        state = State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    return fold(state, [digest(entry) for entry in entries])


async def kept_state(log: LogReader) -> State:
    """What was kept beside the log; where that is lost, or another version's, nothing is known."""
    kept = await log.load_state()
    try:
        state = State.model_validate_json(kept) if kept is not None else State()
    except ValidationError:
        return State()
    return state if 0 <= state.next_seq <= LAST_SEQ + 1 else State()
