"""The state of a conversation, folded from its log alone."""

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.projection import summarize
from perdure.storage.errors import BadSlot, Missing
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.log.reader import LogReader


async def read_state(log: LogReader, before_run: str | None = None, hint: int = 0) -> State:
    """Fold the log, starting from the cached state if there is one.

    With `before_run`, fold from the first event on, up to the first event written by that workflow
    run: the cached state may include it. `hint` is that of `LogReader.end`.
    """
    state = await load_cached_state(log) if before_run is None else State()
    end = await log.end(hint=max(hint, state.next_seq))
    if end < state.next_seq:  # the cached state counts lost events: do not trust it
        state = State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    upto = next((entry.seq for entry in entries if entry.origin.run == before_run), end)
    return fold(state, [summarize(entry) for entry in entries if entry.seq < upto])


async def read_state_until_damage(log: LogReader) -> tuple[State, BadSlot | None]:
    """Fold the log up to the first slot that cannot be read; return the error of that slot.

    Slots behind the cached state are counted, not read.
    """
    state = await load_cached_state(log)
    end = await log.end(hint=state.next_seq)
    if end < state.next_seq:
        return state, Missing(end, (await log.lineage())[0].key(end))
    for slot in await log.read_slots(state.next_seq, end - state.next_seq):
        if not isinstance(slot, Entry):
            return state, slot
        state = fold(state, [summarize(slot)])
    return state, None


async def read_state_at(log: LogReader, end: int) -> State:
    """Fold the first `end` slots alone. Raises Missing and Damaged."""
    cached = await load_cached_state(log)
    state = cached if cached.next_seq <= end else State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    return fold(state, list(map(summarize, entries)))


async def read_agent(log: LogReader, state: State) -> Agent | None:
    """Read the agent that is in force, whole, from the event that put it there."""
    if state.spec is None:
        return None
    event = (await log.get(state.spec_seq)).event
    assert isinstance(event, ConversationStateUpdateEvent), "the slot of an agent holds one"
    return Agent.model_validate(event.value)


async def load_cached_state(log: LogReader) -> State:
    """Load the cached state; an empty one if it is lost or of another version."""
    return parse_cached_state(await log.load_state())


EVENTS_PER_READ = 50


async def read_answer(log: LogReader, state: State) -> str:
    """Return what the agent said last since the user's last message; "" without any."""
    return await last_agent_text(log, state.next_seq, state.last_user_seq + 1)


async def last_agent_text(log: LogReader, end: int, begin: int = 0) -> str:
    """Return the agent's last message or `finish` report in slots `begin` to `end`; else ""."""
    while end > begin:
        first = max(begin, end - EVENTS_PER_READ)
        for entry in reversed(await log.read(first, end - first)):
            if text := agent_text(entry.event):
                return text
        end = first
    return ""
