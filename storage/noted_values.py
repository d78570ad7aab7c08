"""Session state: values of a conversation, of its user, and of all conversations."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from perdure.agent.loop.scopes import parse_key
from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.storage.errors import BadSlot
from perdure.storage.keys import APP_STATE, user_state_prefix
from perdure.storage.log.reader import LogReader
from perdure.storage.log.state import read_state
from perdure.storage.shared_values import SharedValue, read_shared_value
from perdure.storage.store import list_keys

NAMED_SINCE = 2
"""The FOLD_VERSION since which states name the slots of values; an older one may be cached."""


@dataclass(frozen=True)
class SessionValues:
    """Values of the session state by key, and the versions of those that are shared."""

    values: dict[str, Any]
    versions: dict[str, str]


async def load_session_values(log: LogReader) -> SessionValues:
    """Load all values: the shared ones, the user's, and those in the log itself.

    Raises Missing and Damaged, and Altered for a shared value.
    """
    shared, own = await asyncio.gather(load_shared_values(log), load_own_values(log))
    values = {**{value.key: value.value for value in shared}, **own}
    return SessionValues(values, {value.key: value.version for value in shared})


async def load_session_state(log: LogReader) -> dict[str, Any]:
    """Load all values by key, as `load_session_values` does."""
    return (await load_session_values(log)).values


async def load_shared_values(log: LogReader) -> list[SharedValue]:
    """Load the values that the conversation shares with others, by key. Raises Altered."""
    found = await asyncio.gather(
        _load_shared(log, APP_STATE, "app:"),
        _load_shared(log, user_state_prefix(log.user_id), "user:"),
    )
    return [value for values in found for value in values if value.value is not None]


async def load_own_values(log: LogReader, state: State | None = None) -> dict[str, Any]:
    """Load the values of the conversation itself, from the events that its state names.

    Of a state with more keys than it can name, the whole log is read. Raises Missing and Damaged.
    """
    state = state or await read_state(log)
    if state.has_unnamed_values or state.fold_version < NAMED_SINCE:
        return await _read_all_values(log)
    seqs = sorted(set(state.value_seqs.values()))
    entries = await asyncio.gather(*map(log.get, seqs))
    changes = {entry.seq: entry.event.state_changes() for entry in entries}
    return {key: changes[seq][key] for key, seq in state.value_seqs.items()}


async def _load_shared(log: LogReader, prefix: str, scope: str) -> list[SharedValue]:
    names = [
        key.removeprefix(prefix).removesuffix(".json") async for key in list_keys(log.store, prefix)
    ]
    read = partial(read_shared_value, log.store, log.user_id)
    return await asyncio.gather(*(read(f"{scope}{name}") for name in names))


async def _read_all_values(log: LogReader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    async for page in log.pages():
        for slot in page:
            match slot:
                case BadSlot():
                    raise slot
                case Entry(event=event):
                    new = event.state_changes()
                    values |= {key: new[key] for key in new if parse_key(key).scope == "own"}
    return {key: value for key, value in values.items() if value is not None}
