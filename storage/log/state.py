"""The state of a conversation, folded from its log alone."""

import json
from typing import Any, overload

from perdure.agent.loop.evolve import extend_sha, fold
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.events.actions import FinishAction
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.projection import summarize
from perdure.storage.errors import BadSlot, Missing
from perdure.storage.keys import event_key
from perdure.storage.log.bodies import read_bodies
from perdure.storage.log.cached_state import CachedState, parse_cached_state
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.reader import LogReader
from perdure.storage.log.segments import PARALLEL_SEGMENTS, SEGMENT_SIZE, hash_body

PAGE_SIZE = PARALLEL_SEGMENTS * SEGMENT_SIZE
"""Entries that are in memory at once while a long log is folded."""


@overload
async def read_state(
    log: ReadableLog, before_run: None = None, hint: int = 0, cached: CachedState | None = None
) -> State: ...
@overload
async def read_state(
    log: LogReader, before_run: str | None, hint: int = 0, cached: CachedState | None = None
) -> State: ...
async def read_state(
    log: ReadableLog,
    before_run: str | None = None,
    hint: int = 0,
    cached: CachedState | None = None,
) -> State:
    """Fold the log, starting from the cached state if there is one.

    With `before_run`, fold up to the first event written by that workflow run, and start from the
    cached state only if this version of perdure made it from the very events that the log begins
    with, and none of them may be the run's. `hint` is that of `LogReader.end`; `cached` is what the
    caller has loaded of the cached state.
    """
    cached = cached or parse_cached_state(await log.load_state())
    state = cached.state
    if before_run is not None:
        assert isinstance(log, LogReader), "only the writers of the store read it so"
        if not (cached.is_own and await _begins(log, state, before_run)):
            state = State()
    end = await log.end(hint=max(hint, state.next_seq))
    if end < state.next_seq:  # the cached state counts lost events: do not trust it
        state = State()
    while (missing := end - state.next_seq) > 0:
        entries = await log.read(state.next_seq, min(missing, PAGE_SIZE))
        if not entries:
            break
        upto = next((entry.seq for entry in entries if entry.origin.run == before_run), end)
        state = fold(state, [summarize(entry) for entry in entries if entry.seq < upto])
        if upto < end:
            break
    return state


async def _begins(log: LogReader, state: State, before_run: str) -> bool:
    """Check that the state was folded from the log's first slots, none of which names the run."""
    running_sha, seq, name = "", 0, json.dumps(before_run, ensure_ascii=False).encode()
    while seq < state.next_seq:
        try:
            bodies = await read_bodies(log, seq, state.next_seq - seq)
        except BadSlot:  # reading the log in order raises it again
            return False
        if not bodies or any(name in body for body in bodies):
            return False
        for body in bodies:
            running_sha = extend_sha(running_sha, hash_body(body))
        seq += len(bodies)
    return running_sha == state.sha


async def read_state_until_damage(log: ReadableLog) -> tuple[State, BadSlot | None]:
    """Fold the log up to the first slot that cannot be read; return the error of that slot.

    Slots behind the cached state are counted, not read.
    """
    state = await load_cached_state(log)
    end = await log.end(hint=state.next_seq)
    if end < state.next_seq:
        return state, Missing(end, log.prefix + event_key(log.conversation_id, end))
    for slot in await log.read_slots(state.next_seq, end - state.next_seq):
        if not isinstance(slot, Entry):
            return state, slot
        state = fold(state, [summarize(slot)])
    return state, None


async def read_state_at(log: ReadableLog, end: int) -> State:
    """Fold the first `end` slots alone. Raises Missing and Damaged."""
    cached = await load_cached_state(log)
    state = cached if cached.next_seq <= end else State()
    entries = await log.read(state.next_seq, end - state.next_seq)
    return fold(state, list(map(summarize, entries)))


async def read_agent(log: ReadableLog, state: State) -> Agent | None:
    """Read the agent that is in force, whole, from the event that put it there."""
    if state.spec is None:
        return None
    event = (await log.get(state.spec_seq)).event
    assert isinstance(event, ConversationStateUpdateEvent), "the slot of an agent holds one"
    return Agent.model_validate(event.value)


async def load_cached_state(log: ReadableLog) -> State:
    """Load the cached state; an empty one if it is lost or of another version."""
    return parse_cached_state(await log.load_state()).state


EVENTS_PER_READ = 50


async def read_answer(log: ReadableLog, state: State) -> str:
    """Return what the agent said last since the user's last message; "" without any."""
    return await last_agent_text(log, state.next_seq, state.last_user_seq + 1)


async def read_outputs(log: ReadableLog, state: State) -> dict[str, Any] | None:
    """Return the outputs with which the agent finished the last turn; None without any."""
    if state.ending != "finish" or state.spec is None or state.spec.response_schema is None:
        return None
    end = state.next_seq
    while end > state.last_user_seq:
        first = max(state.last_user_seq, end - EVENTS_PER_READ, 0)
        for entry in reversed(await log.read(first, end - first)):
            action = getattr(entry.event, "action", None)
            if isinstance(action, FinishAction):
                return action.outputs
        end = first
    return None


async def last_agent_text(log: ReadableLog, end: int, begin: int = 0) -> str:
    """Return the agent's last message or `finish` report in slots `begin` to `end`; else ""."""
    while end > begin:
        first = max(begin, end - EVENTS_PER_READ)
        for entry in reversed(await log.read(first, end - first)):
            if text := agent_text(entry.event):
                return text
        end = first
    return ""
