"""States of sessions that are wrong in ways that somebody might think of, or once were."""

from collections.abc import Callable
from typing import Any, TypeAlias

from perdure.storage.shared_values import ANY, write_shared_value
from perdure.tools.state import SessionState

Mask: TypeAlias = Callable[[Any], Any]


class OverwritesUnseenValues(SessionState):
    """The last writer of a shared value wins."""

    async def _write(self, key: str, value: Any, mask: Mask) -> Any:  # noqa: ARG002
        store, user_id = self.log.store, self.log.user_id
        return await write_shared_value(store, user_id, key, value, ANY, self.call_id)


class ForgetsItsWrites(SessionState):
    """An attempt does not find what an earlier one has written."""

    async def _write(self, key: str, value: Any, mask: Mask) -> Any:
        self.call_id += "+"
        return await super()._write(key, value, mask)


class ForgetsRefusals(SessionState):
    """An attempt writes what another one has failed with: it did so until 2026-11-26."""

    async def _write(self, key: str, value: Any, mask: Mask) -> Any:
        if key in self._updates:
            return await super()._write(key, value, mask)
        store, user_id, version = self.log.store, self.log.user_id, self._shared[key].version
        return await write_shared_value(store, user_id, key, value, version, self.call_id)


class RecordsItsWish(SessionState):
    """The log says what a call meant to write, not what it has written."""

    async def commit(self, mask: Mask) -> dict[str, Any]:
        changes = dict(self._changes)
        return {**await super().commit(mask), **changes}


class KeepsDeletedValues(SessionState):
    """A value of the conversation's own is read though it was deleted."""

    async def _load_own(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for seq in range(await self.log.end()):
            changes = (await self.log.get(seq)).event.state_changes()
            values |= {key: new for key, new in changes.items() if new is not None}
        return {key: value for key, value in values.items() if ":" not in key}
