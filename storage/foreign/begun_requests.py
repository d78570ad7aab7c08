"""Requests that a foreign protocol repeats after a time-out, and the message that each has sent.

The key has the time until which a record is of use, so that what is left can be found by listing.
"""

import hashlib
from datetime import UTC, datetime

from pydantic import ValidationError

from perdure.events.base import Frozen
from perdure.storage.errors import Altered
from perdure.storage.keys import BEGUN_REQUESTS, check_user_id
from perdure.storage.store import Store, list_keys


class BegunRequest(Frozen):
    """The work that a request has begun: a message, or answers after a slot of a conversation."""

    conversation_id: str
    message_id: str | None = None
    after_seq: int = -1
    is_new: bool = False
    """Whether the conversation begins with the request."""


class BegunRequests:
    """The requests of all users that may be repeated within `lifetime` seconds."""

    def __init__(self, store: Store, lifetime: int) -> None:
        self._store = store
        self._lifetime = lifetime

    async def find(self, user_id: str, request: str) -> BegunRequest | None:
        """Find what a request has begun in the last `lifetime` seconds, or up to twice as many."""
        newest = self._end_of_window()
        for until in (newest, newest - self._lifetime):
            key = _key(until, user_id, request)
            if (body := await self._store.read(key)) is not None:
                return _parse(key, body)
        return None

    async def note(self, user_id: str, request: str, begun: BegunRequest) -> None:
        """Note what a request begins, in place of what the same one has begun before."""
        key = _key(self._end_of_window(), user_id, request)
        await self._store.replace(key, begun.model_dump_json().encode())

    async def note_first(self, user_id: str, request: str, begun: BegunRequest) -> BegunRequest:
        """Note what a request begins, unless another has: then return what that one has begun."""
        key = _key(self._end_of_window(), user_id, request)
        if await self._store.create(key, begun.model_dump_json().encode()):
            return begun
        body = await self._store.read(key)
        return begun if body is None else _parse(key, body)

    def _end_of_window(self) -> int:
        window = int(datetime.now(UTC).timestamp()) // self._lifetime
        return (window + 2) * self._lifetime


async def delete_old_requests(store: Store, now: datetime) -> int:
    """Delete the records that are of no use any more; return how many."""
    before, old = int(now.timestamp()), []
    async for key in list_keys(store, BEGUN_REQUESTS):
        until = key.removeprefix(BEGUN_REQUESTS)[:10]
        if until.isdecimal() and int(until) >= before:
            break
        old.append(key)
    for key in old:
        await store.delete(key)
    return len(old)


def _key(until: int, user_id: str, request: str) -> str:
    digest = hashlib.sha256(f"{check_user_id(user_id)}\0{request}".encode()).hexdigest()
    return f"{BEGUN_REQUESTS}{until:010d}-{digest}.json"


def _parse(key: str, body: bytes) -> BegunRequest:
    try:
        return BegunRequest.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error
