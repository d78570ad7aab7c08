"""Going on from an earlier point of a conversation, in another one, without copying anything."""

import json
from collections.abc import Sequence
from typing import Any

from agent.evolve import fold
from agent.state import State
from events.entry import Origin
from events.event import AnyEvent
from events.projection import digest
from storage.conversations import exists
from storage.errors import StoreRefused
from storage.keys import FORK, FORKS, conversation_prefix, fork_mark
from storage.lineage import Fork, fork_in, holder_of
from storage.listing import keys
from storage.log import EventLog
from storage.reader import LogReader
from storage.store import Store


async def fork(
    parent: EventLog, conversation_id: str, state: State, events: Sequence[AnyEvent]
) -> State:
    """Begin a conversation with the slots of `parent` that `state` was folded from, as they are.

    Its own slots begin behind them, with `events`. Returns its state. The slots are referred to
    where they lie: a fork of a fork at a slot of the first conversation is a fork of that one.
    Raises StoreRefused where the id is taken.
    """
    at = state.next_seq - 1
    holder = holder_of(await parent.lineage(), at)
    begun = Fork(
        user_id=holder.user_id, conversation_id=holder.conversation_id, at=at, sha=state.sha
    )
    # The mark comes first: a fork without one would lose its slots when they are purged.
    mark = json.dumps({"user_id": parent.user_id, "at": at}).encode()
    await parent.store.replace(holder.prefix + fork_mark(conversation_id), mark)
    await _begin(parent.store, parent.user_id, conversation_id, begun)
    child = EventLog(parent.store, parent.user_id, conversation_id, parent.cache)
    origin = Origin(run="fork", activity=conversation_id)
    written = await child.append(events, base=state.next_seq, origin=origin)
    state = fold(state, [digest(entry) for entry in written])
    await child.save_state(state.model_dump_json().encode())
    return state


async def _begin(store: Store, user_id: str, conversation_id: str, begun: Fork) -> None:
    prefix = conversation_prefix(user_id, conversation_id)
    free = not await exists(store, user_id, conversation_id)
    if free and await store.create(prefix + FORK, begun.body()):
        return
    if await fork_in(store, prefix) != begun:  # else the answer to our own write was lost
        raise StoreRefused(f"There is a conversation {conversation_id} already: use a new id.")


async def forks_of(log: LogReader) -> list[str]:
    """The conversations whose first slots are this one's own, in no order."""
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    marks = keys(log.store, prefix + FORKS)
    return [_named(mark) async for mark in marks if await _is_fork(log, mark)]


async def marked(log: LogReader) -> list[int]:
    """The last slots of this conversation that its forks begin with."""
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    bodies = [await log.store.read(mark) async for mark in keys(log.store, prefix + FORKS)]
    return [mark["at"] for mark in map(_read, bodies) if isinstance(mark.get("at"), int)]


async def _is_fork(log: LogReader, mark: str) -> bool:
    """Whether the fork was begun, and is there: the mark alone stays where either fails."""
    user_id = _read(await log.store.read(mark)).get("user_id", log.user_id)
    try:
        prefix = conversation_prefix(str(user_id), _named(mark))
    except ValueError:  # no log wrote this mark
        return False
    fork = await fork_in(log.store, prefix)
    whose = (log.user_id, log.conversation_id)
    return fork is not None and (fork.user_id, fork.conversation_id) == whose


def _read(mark: bytes | None) -> dict[str, Any]:
    """What a mark says; nothing, where it cannot be read."""
    try:
        said = json.loads(mark or b"{}")
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _named(mark: str) -> str:
    return mark.rpartition("/")[2].removesuffix(".json")
