"""Forking: a conversation that continues an earlier point of another one, without copying."""

import json
from collections.abc import Sequence
from typing import Any

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.projection import summarize
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import StoreRefused
from perdure.storage.keys import FORK, FORKS, conversation_prefix, fork_mark_key
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.lineage import Fork, find_holder, read_fork
from perdure.storage.log.reader import LogReader
from perdure.storage.store import Store, list_keys


async def fork(
    parent: EventLog, conversation_id: str, state: State, events: Sequence[AnyEvent]
) -> State:
    """Begin a conversation with the slots of `parent` that `state` was folded from.

    Its own slots begin behind them, with `events`. Returns its state. Slots are not copied: a fork
    of a fork at a slot of the first conversation is a fork of that one. Raises StoreRefused where
    the id is taken.
    """
    last_seq = state.next_seq - 1
    holder = find_holder(await parent.lineage(), last_seq)
    record = Fork(
        user_id=holder.user_id, conversation_id=holder.conversation_id, at=last_seq, sha=state.sha
    )
    # The mark comes first: a fork without one would lose its slots when they are purged.
    mark = json.dumps({"user_id": parent.user_id, "at": last_seq}).encode()
    await parent.store.replace(holder.prefix + fork_mark_key(conversation_id), mark)
    await _create_fork(parent.store, parent.user_id, conversation_id, record)
    child = EventLog(parent.store, parent.user_id, conversation_id, parent.cache)
    origin = Origin(run="fork", activity=conversation_id)
    written = await child.append(events, base=state.next_seq, origin=origin)
    state = fold(state, [summarize(entry) for entry in written])
    await child.save_state(state.model_dump_json().encode())
    return state


async def _create_fork(store: Store, user_id: str, conversation_id: str, record: Fork) -> None:
    prefix = conversation_prefix(user_id, conversation_id)
    free = not await conversation_exists(store, user_id, conversation_id)
    if free and await store.create(prefix + FORK, record.body()):
        return
    if await read_fork(store, prefix) != record:  # if equal, the answer to our own write was lost
        raise StoreRefused(f"There is a conversation {conversation_id} already: use a new id.")


async def forks_of(log: LogReader) -> list[str]:
    """List the conversations whose first slots are this one's own, in no order."""
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    marks = list_keys(log.store, prefix + FORKS)
    return [_fork_id(mark) async for mark in marks if await _is_fork(log, mark)]


async def forked_seqs(log: LogReader) -> list[int]:
    """List the last slots of this conversation that its forks begin with."""
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    bodies = [await log.store.read(mark) async for mark in list_keys(log.store, prefix + FORKS)]
    return [mark["at"] for mark in map(_parse_mark, bodies) if isinstance(mark.get("at"), int)]


async def _is_fork(log: LogReader, mark: str) -> bool:
    """Check that the fork was begun and still exists: the mark alone stays where either failed."""
    user_id = _parse_mark(await log.store.read(mark)).get("user_id", log.user_id)
    try:
        prefix = conversation_prefix(str(user_id), _fork_id(mark))
    except ValueError:  # no log wrote this mark
        return False
    fork = await read_fork(log.store, prefix)
    parent_ids = (log.user_id, log.conversation_id)
    return fork is not None and (fork.user_id, fork.conversation_id) == parent_ids


def _parse_mark(mark: bytes | None) -> dict[str, Any]:
    """Return the fields of a mark; none if it cannot be read."""
    try:
        fields = json.loads(mark or b"{}")
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _fork_id(mark: str) -> str:
    return mark.rpartition("/")[2].removesuffix(".json")
