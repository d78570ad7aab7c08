"""Copies of single objects, and what they add up to."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store

UNCHANGING = re.compile(
    r"/(events|responses|blobs|segments/\d|workspace|results|samples|archive)\b|/fork\.json$"
)
"""Matches the keys of objects that nobody writes again: a copy of one is never out of date."""


@dataclass
class Copied:
    """The content of a copy, `objects` of which this run has written."""

    users: int = 0
    conversations: int = 0
    discussions: int = 0
    events: int = 0
    objects: int = 0
    later: int = 0
    """Conversations and discussions that go on after the moment."""
    newest: str = ""
    """The time of the newest event that was written, in UTC."""


async def copy_objects(source: Store, target: Store, keys: Iterable[str], copied: Copied) -> None:
    """Copy the objects that the target lacks, or has in another version."""

    async def copy(key: str) -> bool:
        body = await source.read(key)
        return body is not None and await write_object(target, key, body)

    async for is_written in map_parallel(copy, keys):
        copied.objects += is_written


async def write_object(target: Store, key: str, body: bytes) -> bool:
    """Write an object; tell whether the target lacked it, or had another version."""
    if await target.create(key, body):
        return True
    if UNCHANGING.search(key) or await target.read(key) == body:
        return False
    await target.replace(key, body)
    return True
