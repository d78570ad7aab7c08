"""The agents of a user in the store: named ones, and settings for all of them."""

import json
from typing import Any

from perdure.storage import keys
from perdure.storage.errors import Altered
from perdure.storage.store import Store, list_keys

MAX_AGENTS = 200
"""Named agents of one user that are listed."""


class UserAgents:
    """The named agents and the settings of one user. Raises ValueError for a bad user id.

    Each is a JSON object as the user wrote it; the last writer wins.
    """

    def __init__(self, store: Store, user_id: str) -> None:
        self._store = store
        self._user_id = user_id
        self._prefix = keys.agents_prefix(user_id)

    async def list_names(self) -> list[str]:
        """List the names in order, at most MAX_AGENTS. Raises StoreUnavailable."""
        names: list[str] = []
        async for key in list_keys(self._store, self._prefix):
            names.append(key.removeprefix(self._prefix).removesuffix(".json"))
            if len(names) == MAX_AGENTS:
                break
        return names

    async def load(self, name: str) -> dict[str, Any] | None:
        """Load an agent; None without one. Raises ValueError, Altered, StoreUnavailable."""
        return await self._load(keys.agent_key(self._user_id, name))

    async def save(self, name: str, table: dict[str, Any]) -> None:
        """Save an agent in place of an earlier one. Raises ValueError, StoreUnavailable."""
        await self._store.replace(keys.agent_key(self._user_id, name), _dump(table))

    async def delete(self, name: str) -> None:
        """Delete an agent, if there is one. Raises ValueError, StoreUnavailable."""
        await self._store.delete(keys.agent_key(self._user_id, name))

    async def load_settings(self) -> dict[str, Any]:
        """Load the fields that the user sets for all agents. Raises Altered, StoreUnavailable."""
        return await self._load(keys.user_settings_key(self._user_id)) or {}

    async def save_settings(self, fields: dict[str, Any]) -> None:
        """Save these fields in place of the earlier ones. Raises StoreUnavailable."""
        await self._store.replace(keys.user_settings_key(self._user_id), _dump(fields))

    async def _load(self, key: str) -> dict[str, Any] | None:
        body = await self._store.read(key)
        if body is None:
            return None
        try:
            table = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Altered(key) from error
        if not isinstance(table, dict):
            raise Altered(key)
        return table


def _dump(table: dict[str, Any]) -> bytes:
    return json.dumps(table, ensure_ascii=False).encode()
