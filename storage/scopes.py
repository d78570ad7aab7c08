"""What is noted beside a conversation: values of its own, of its user, and of everybody."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from agent.scopes import scoped, wrong_key
from events.control import ConversationStateUpdateEvent
from events.entry import Entry
from storage.errors import Altered
from storage.keys import APP_STATE, user_state_prefix
from storage.listing import keys
from storage.reader import LogReader
from storage.store import Store

PAGE = 1000


async def share(store: Store, user_id: str, values: Mapping[str, Any]) -> None:
    """Keep those of the values whose keys begin with `user:` or `app:`; the last writer wins.

    None stands for a value that is gone. Raises ValueError for a key that names nothing.
    """
    if wrong := wrong_key(values):
        raise ValueError(wrong)
    prefixes = {"user": user_state_prefix(user_id), "app": APP_STATE}
    for key, value in values.items():
        scope, name = scoped(key)
        if scope != "own":
            body = json.dumps(value, ensure_ascii=False).encode(errors="replace")
            await store.replace(f"{prefixes[scope]}{name}.json", body)


async def session_state(log: LogReader) -> dict[str, Any]:
    """All values by key: everybody's, the user's, and those that the log itself tells.

    The whole log is read for it. Raises Missing and Damaged, and Altered of a shared value.
    """
    everybody, users, own = await asyncio.gather(
        _shared(log.store, APP_STATE, "app:"),
        _shared(log.store, user_state_prefix(log.user_id), "user:"),
        _own(log),
    )
    merged = {**everybody, **users, **own}
    return {key: value for key, value in merged.items() if value is not None}


async def _shared(store: Store, prefix: str, scope: str) -> dict[str, Any]:
    found = [key async for key in keys(store, prefix)]
    bodies = await asyncio.gather(*map(store.read, found))
    names = (key.removeprefix(prefix).removesuffix(".json") for key in found)
    values = map(_value, found, bodies)
    return {f"{scope}{name}": value for name, value in zip(names, values, strict=True)}


def _value(key: str, body: bytes | None) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError) as error:
        raise Altered(key) from error


async def _own(log: LogReader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    first = 0
    while entries := await log.read(first, PAGE):
        for entry in entries:
            values |= {key: one for key, one in _noted(entry) if scoped(key).scope == "own"}
        first += len(entries)
    return values


def _noted(entry: Entry) -> list[tuple[str, Any]]:
    event = entry.event
    if isinstance(event, ConversationStateUpdateEvent) and event.key == "state":
        return list(event.value.items()) if isinstance(event.value, dict) else []
    return []
