"""Session state: values of a conversation, of its user, and of all conversations."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from perdure.agent.loop.scopes import find_key_error, parse_key
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.storage.errors import Altered, BadSlot
from perdure.storage.keys import APP_STATE, user_state_prefix
from perdure.storage.log.reader import LogReader
from perdure.storage.store import Store, list_keys


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
    values: dict[str, Any] = {}
    listed = [key async for key in list_keys(store, prefix)]
    for key, body in zip(listed, await asyncio.gather(*map(store.read, listed)), strict=True):
        name = key.removeprefix(prefix).removesuffix(".json")
        try:
            values[f"{scope}{name}"] = json.loads(body or b"null")
        except (ValueError, RecursionError) as error:
            raise Altered(key) from error
    return values


async def _load_own(log: LogReader) -> dict[str, Any]:
    values: dict[str, Any] = {}
    async for page in log.pages():
        for slot in page:
            match slot:
                case BadSlot():
                    raise slot
                case Entry(event=ConversationStateUpdateEvent(key="state", value=dict() as new)):
                    values |= {key: new[key] for key in new if parse_key(key).scope == "own"}
    return values
