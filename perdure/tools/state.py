"""The session state, as one call of a tool reads and changes it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.loop.scopes import find_key_error, parse_key
from perdure.events.nesting import MAX_DEPTH, exceeds_depth
from perdure.storage.log.reader import LogReader
from perdure.storage.noted_values import load_own_values, load_shared_values
from perdure.storage.shared_values import (
    SharedValue,
    StateConflict,
    read_shared_value,
    write_shared_value,
)

MAX_CHANGE_BYTES = 32 * 1024
"""Bytes of all that one call changes: larger values belong in a file of the workspace."""

Change: TypeAlias = Callable[[Any], Any]
"""A function of the value before, which is None where there is none, to the new one."""


@dataclass(eq=False)
class SessionState:
    """The values of a conversation, and those that it shares with its user's (app's) others.

    A key that begins with `user:` or `app:` is shared. What a call changes is recorded with its
    result, all at once: a call that fails changes nothing. A shared value that somebody else has
    changed since the call read it makes the call fail with a sentence, and stays as it is.
    """

    log: LogReader
    call_id: str
    """The id of the call, by which an attempt finds what an earlier one has written."""
    may_write_app: bool = False
    """Whether the user of the conversation may change `app:` values."""
    _changes: dict[str, Any] = field(default_factory=dict)
    _updates: dict[str, tuple[Change, ...]] = field(default_factory=dict)
    _shared: dict[str, SharedValue] = field(default_factory=dict)
    _own: dict[str, Any] | None = None

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, with what this call has changed. Raises ValueError."""
        _check_key(key)
        value = self._changes[key] if key in self._changes else await self._read(key)
        return default if value is None else value

    async def set(self, key: str, value: Any) -> None:
        """Give a key a value that JSON can express; None deletes it. Raises ValueError."""
        _check_key(key)
        self._require_write(key)
        changes = {**self._changes, key: value}
        check_changes(changes)
        if parse_key(key).scope != "own":
            await self._read(key)  # the version that is replaced
        self._updates.pop(key, None)
        self._changes = changes

    async def delete(self, key: str) -> None:
        """Delete the value of a key, if it has one. Raises ValueError for an invalid key."""
        await self.set(key, None)

    async def update(self, key: str, change: Change) -> Any:
        """Set a key to what `change` makes of its value, and return that.

        Of a shared value that others change meanwhile, `change` is called again with the newest
        one. Raises ValueError.
        """
        earlier = self._updates.get(key, ())
        was_set = key in self._changes and not earlier
        value = change(await self.get(key))
        await self.set(key, value)
        if not was_set:
            self._updates[key] = (*earlier, change)
        return value

    async def all(self) -> dict[str, Any]:
        """Return all values by key, with what this call has changed."""
        shared = {value.key: value.value for value in await load_shared_values(self.log)}
        values = {**shared, **await self._load_own(), **self._changes}
        return {key: value for key, value in values.items() if value is not None}

    async def commit(self, mask: Callable[[Any], Any]) -> dict[str, Any]:
        """Write the shared changes, and return all changes as they are to be recorded.

        `mask` masks secrets. Raises CommitConflict, Altered and StoreError.
        """
        changes: dict[str, Any] = mask(self._changes)
        written: dict[str, Any] = {}
        for key in changes:
            if parse_key(key).scope == "own":
                continue
            try:
                written[key] = await self._write(key, changes[key], mask)
            except StateConflict as error:
                raise CommitConflict(error, written) from error
        return {**changes, **written}

    async def _write(self, key: str, value: Any, mask: Callable[[Any], Any]) -> Any:
        store, user_id, is_update = self.log.store, self.log.user_id, key in self._updates
        while True:
            version = self._shared[key].version
            try:
                # The call fails for good: an attempt that is late must not write it after all.
                return await write_shared_value(
                    store, user_id, key, value, version, self.call_id, notes_refusal=not is_update
                )
            except StateConflict:
                if not is_update:
                    raise
            self._shared[key] = await read_shared_value(store, user_id, key, self.call_id)
            value = self._shared[key].value
            for change in self._updates[key]:
                value = change(value)
            check_changes({key: value})
            value = mask(value)

    async def _read(self, key: str) -> Any:
        if parse_key(key).scope == "own":
            return (await self._load_own()).get(key)
        if key not in self._shared:
            store, user_id = self.log.store, self.log.user_id
            self._shared[key] = await read_shared_value(store, user_id, key, self.call_id)
        return self._shared[key].value

    async def _load_own(self) -> dict[str, Any]:
        if self._own is None:
            self._own = await load_own_values(self.log)
        return self._own

    def _require_write(self, key: str) -> None:
        if parse_key(key).scope == "app" and not self.may_write_app:
            raise PermissionError(forbid_app_values(self.log.user_id))


class CommitConflict(Exception):
    """A shared value was changed by somebody else; `written` are those that were written before."""

    def __init__(self, conflict: StateConflict, written: dict[str, Any]) -> None:
        others = f"only {', '.join(written)} was" if written else "nothing was"
        also = f" Of what this call changes of the state, {others} written."
        super().__init__(f"{conflict}{also}")
        self.written = written


def forbid_app_values(user_id: str) -> str:
    """Return the sentence for a user who may not change `app:` values."""
    return (
        f"The user {user_id} may not change values of app:, which all users share: those whom the "
        "setting app_writers of the worker names may."
    )


def check_changes(changes: dict[str, Any]) -> None:
    """Check that changes of the state can be recorded. Raises ValueError with a sentence."""
    try:
        size = len(json.dumps(changes, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"A value of the state is one that JSON can express ({error}).") from error
    if size > MAX_CHANGE_BYTES:
        raise ValueError(
            f"What one call changes of the state has at most {MAX_CHANGE_BYTES:,} bytes: keep more "
            "than that in a file."
        )
    if exceeds_depth(changes):
        raise ValueError(
            f"A value of the state is at most {MAX_DEPTH} levels deep: keep more in a file."
        )


def _check_key(key: str) -> None:
    if wrong := find_key_error((key,)):
        raise ValueError(wrong)
