"""Summaries of conversations, each from a few objects, however long it is.

A state is stored beside the log whenever a conversation comes to rest: where there are events that
it does not cover, the agent is at work, or the state was lost. Events are read as plain JSON, for
their models are slow to import.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure.agent.loop.phase import find_phase
from perdure.agent.loop.state import WAITING_STATUSES, State, actions_to_confirm
from perdure.storage import keys
from perdure.storage.conversations import read_creation_time
from perdure.storage.keys import FORK_RUN
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.store import Store, list_keys
from perdure.storage.summary import (
    CALL_FIELDS,
    Summary,
    find_trouble,
    message_text,
    parse_fields,
    shorten_title,
)

FIRST_EVENTS = 8
"""The spec and the first message are looked for in so many events."""


@dataclass(frozen=True)
class _Log:
    store: Store
    user_id: str
    id: str

    @property
    def prefix(self) -> str:
        return keys.conversation_prefix(self.user_id, self.id)

    async def read(self, name: str) -> dict[str, Any]:
        """Read an object as JSON; an empty one if it is lost or damaged."""
        return parse_fields(await self.store.read(self.prefix + name))

    async def event(self, seq: int) -> dict[str, Any]:
        return await self.read(keys.event_key(self.id, seq))

    async def end(self, hint: int) -> int:
        """Return the number of slots as `LogReader.end` does, without asking for a lineage.

        Slots fill in order: where the first that the state does not cover is free, none follows.
        """
        if hint and await self.store.read(self.prefix + keys.event_key(self.id, hint)) is None:
            return hint
        after = self.prefix + keys.start_after(max(0, hint - 1))
        async for key in list_keys(self.store, self.prefix + keys.EVENTS, after):
            digits = key.rpartition("/")[2][:6]
            hint = max(hint, int(digits) + 1) if digits.isdecimal() else hint
        return hint


async def summarize(
    store: Store, user_id: str, conversation_id: str, with_message: bool = False
) -> Summary | None:
    """Summarize a conversation; None where nothing is recorded of it. Raises StoreError."""
    log = _Log(store, user_id, conversation_id)
    state = parse_cached_state(await store.read(log.prefix + keys.STATE)).state
    last, end = await asyncio.gather(log.event(max(0, state.next_seq - 1)), log.end(state.next_seq))
    if not last:  # a fork without events of its own, a lost state or a lost event: ask the log
        end = await _read_end(log, state)
    if not end:
        return None
    if end != state.next_seq:
        last = await log.event(end - 1)
    early = [] if state.title and not with_message else await _read_early_events(log, state, end)
    trouble, begun = await asyncio.gather(
        store.read(log.prefix + keys.TROUBLE), read_creation_time(store, user_id, conversation_id)
    )
    return _build(log, state, end, last, early, trouble, begun)


def _build(
    log: _Log,
    state: State,
    end: int,
    last: dict[str, Any],
    early: list[dict[str, Any]],
    trouble: bytes | None,
    begun: datetime | None,
) -> Summary:
    at_rest = end == state.next_seq
    message = next(filter(None, map(message_text, early)), None)
    waiting = actions_to_confirm(state) if at_rest else ()
    is_new_fork = last.get("origin", {}).get("run") == FORK_RUN
    return Summary(
        id=log.id,
        status="idle" if is_new_fork else state.status if at_rest else "running",
        phase="idle" if is_new_fork else find_phase(state) if at_rest else "running",
        turn=state.turn,
        events=end,
        model=state.spec.model.name if state.spec else _model_name(early),
        begun=begun.isoformat(timespec="milliseconds") if begun else None,
        last_event=f"{last['timestamp']}+00:00" if "timestamp" in last else None,
        title=state.title or (shorten_title(message) if message else None),
        tags=state.spec.tags if state.spec else (),
        trouble=find_trouble(trouble, end),
        asks=tuple(call.model_dump(include=CALL_FIELDS) for call in waiting),
        tokens=state.usage.prompt_tokens + state.usage.completion_tokens,
        cost=state.usage.known_cost,
        usage=state.usage,
        first_message=message,
        agent=state.spec.agent if state.spec else _spec_field(early, "agent"),
        app=state.spec.app_name if state.spec else _spec_field(early, "app_name"),
        wait=summarize_wait(state) if at_rest else None,
        is_hidden=bool(state.spec.hidden if state.spec else _spec_field(early, "hidden")),
    )


def summarize_wait(state: State) -> dict[str, Any] | None:
    """Return what the agent waits for, as the fields of a `WaitDetail`; None where it does not."""
    if state.wait is None or state.status not in WAITING_STATUSES:
        return None
    return state.wait.detail().model_dump()


async def _read_early_events(log: _Log, state: State, end: int) -> list[dict[str, Any]]:
    """Read the first message, and the spec where the state has none."""
    seq = state.first_user_seq
    seqs = range(min(end, FIRST_EVENTS)) if seq is None else range(seq, seq + 1)
    events = await asyncio.gather(*map(log.event, seqs))
    return list(events) if all(events) else await _read_inherited(log, seqs)


async def _read_inherited(log: _Log, seqs: range) -> list[dict[str, Any]]:
    """Read slots that may be those of the conversation that this one forks."""
    from perdure.events.entry import Entry  # slow: the models of all events
    from perdure.storage.log.reader import LogReader

    slots = await LogReader(log.store, log.user_id, log.id).read_slots(seqs.start, len(seqs))
    return [parse_fields(slot.body) for slot in slots if isinstance(slot, Entry)]


async def _read_end(log: _Log, state: State) -> int:
    from perdure.storage.log.reader import LogReader  # slow: the models of all events

    return await LogReader(log.store, log.user_id, log.id).end(hint=state.next_seq)


def _spec_field(events: list[dict[str, Any]], name: str) -> Any:
    """Return a field of the spec, by the event that records it."""
    specs = (event["value"] for event in events if event.get("key") == "spec")
    return next((spec.get(name) for spec in specs if isinstance(spec, dict)), None)


def _model_name(events: list[dict[str, Any]]) -> str | None:
    """Return the name of the model in the event that records the spec."""
    specs = (event["value"] for event in events if event.get("key") == "spec")
    return next((spec["model"]["name"] for spec in specs if "model" in spec), None)
