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
from perdure.storage.keys import FORK, FORK_RUN, FORKS, conversation_prefix, fork_mark_key
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.lineage import Fork, find_holder, read_fork
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.reader import LogReader
from perdure.storage.store import list_keys


async def fork(
    parent: LogReader, child: EventLog, state: State, events: Sequence[AnyEvent]
) -> State:
    """Begin a conversation with the slots of `parent` that `state` was folded from.

    Its own slots begin behind them, with `events`. Returns its state. Slots are not copied: a fork
    of a fork at a slot of the first conversation is a fork of that one. They may be of different
    users. Raises StoreRefused where the id is taken.
    """
    last_seq = state.next_seq - 1
    holder = find_holder(await parent.lineage(), last_seq)
    record = Fork(
        user_id=holder.user_id, conversation_id=holder.conversation_id, at=last_seq, sha=state.sha
    )
    store, conversation_id = child.store, child.conversation_id
    # The mark comes first: a fork without one would lose its slots when they are purged.
    mark = json.dumps({"user_id": child.user_id, "at": last_seq}).encode()
    await store.replace(holder.prefix + fork_mark_key(conversation_id), mark)
    free = not await conversation_exists(store, child.user_id, conversation_id)
    created = free and await store.create(child.prefix + FORK, record.body())
    # If they are equal, the answer to our own write was lost.
    if not created and await read_fork(store, child.prefix) != record:
        raise StoreRefused(f"There is a conversation {conversation_id} already: use a new id.")
    origin = Origin(run=FORK_RUN, activity=conversation_id)
    written = await child.append(events, base=state.next_seq, origin=origin)
    state = fold(state, [summarize(entry) for entry in written])
    await child.save_state(encode_cached_state(state))
    return state


async def is_new_fork(log: ReadableLog, end: int) -> bool:
    """Check whether the log of `end` events is that of a fork which nobody has begun."""
    entry = await log.find(end - 1)
    return entry is not None and entry.origin.run == FORK_RUN


async def forks_of(log: LogReader) -> list[str]:
    """List the conversations whose first slots are this one's own, in no order.

    One of another user is named `USER/ID`.
    """
    names = []
    for fork_id, mark in await _read_marks(log):
        if await _is_fork(log, fork_id, mark):
            user_id = mark.get("user_id", log.user_id)
            names.append(fork_id if user_id == log.user_id else f"{user_id}/{fork_id}")
    return names


async def forked_seqs(log: LogReader) -> list[int]:
    """List the last slots of this conversation that its forks begin with."""
    marks = await _read_marks(log)
    return [mark["at"] for _, mark in marks if isinstance(mark.get("at"), int)]


async def _is_fork(log: LogReader, fork_id: str, mark: dict[str, Any]) -> bool:
    """Check that the fork was begun and still exists: the mark alone stays where either failed."""
    try:
        prefix = conversation_prefix(str(mark.get("user_id", log.user_id)), fork_id)
    except ValueError:  # no log wrote this mark
        return False
    fork = await read_fork(log.store, prefix)
    parent_ids = (log.user_id, log.conversation_id)
    return fork is not None and (fork.user_id, fork.conversation_id) == parent_ids


async def _read_marks(log: LogReader) -> list[tuple[str, dict[str, Any]]]:
    """Read the ids in the marks, and the fields of each; none where it cannot be read."""
    marks = []
    async for key in list_keys(log.store, log.prefix + FORKS):
        try:
            fields = json.loads(await log.store.read(key) or b"{}")
        except (ValueError, RecursionError):
            fields = {}
        fork_id = key.rpartition("/")[2].removesuffix(".json")
        marks.append((fork_id, fields if isinstance(fields, dict) else {}))
    return marks
