"""Session state: values of a conversation, of its user, and of all conversations."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from perdure.agent.loop.scopes import find_key_error, parse_key
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.storage.errors import Altered
from perdure.storage.keys import APP_STATE, user_state_prefix
from perdure.storage.log.reader import LogReader
from perdure.storage.store import Store, list_keys

ENTRIES_PER_PAGE = 1000


async def save_shared_values(store: Store, user_id: str, values: Mapping[str, Any]) -> None:
    """Save the values whose keys begin with `user:` or `app:`; the last writer wins.

    None stands for a deleted value. Raises ValueError for an invalid key.
    """
    if wrong := find_key_error(values):
        raise ValueError(wrong)
    prefixes = {"user": user_state_prefix(user_id), "app": APP_STATE}
    for key, value in values.items():
        scope, name = parse_key(key)
        if scope != "own":
            body = json.dumps(value, ensure_ascii=False).encode(errors="replace")
            await store.replace(f"{prefixes[scope]}{name}.json", body)


async def load_session_state(log: LogReader) -> dict[str, Any]:
    """Load all values by key: the shared ones, the user's, and those in the log itself.

    Reads the whole log. Raises Missing and Damaged, and Altered for a shared value.
    """
    app_values, user_values, own_values = await asyncio.gather(
        _load_shared(log.store, APP_STATE, "app:"),
        _load_shared(log.store, user_state_prefix(log.user_id), "user:"),
        _load_own(log),
    )
    merged = {**app_values, **user_values, **own_values}
    return {key: value for key, value in merged.items() if value is not None}


async def _load_shared(store: Store, prefix: str, scope: str) -> dict[str, Any]:
    listed = [key async for key in list_keys(store, prefix)]
    bodies = await asyncio.gather(*map(store.read, listed))
    names = (key.removeprefix(prefix).removesuffix(".json") for key in listed)
    values = map(_parse_value, listed, bodies)
    return {f"{scope}{name}": value for name, value in zip(names, values, strict=True)}


def _parse_value(key: str, body: bytes | None) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError) as error:
        raise Altered(key) from error


async def _load_own(log: LogReader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    first = 0
    while entries := await log.read(first, ENTRIES_PER_PAGE):
        for entry in entries:
            values |= {
                key: value for key, value in _state_updates(entry) if parse_key(key).scope == "own"
            }
        first += len(entries)
    return values


def _state_updates(entry: Entry) -> list[tuple[str, Any]]:
    event = entry.event
    if isinstance(event, ConversationStateUpdateEvent) and event.key == "state":
        return list(event.value.items()) if isinstance(event.value, dict) else []
    return []
