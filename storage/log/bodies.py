"""The stored bytes of a log's slots, as few parsed as can be."""

from contextlib import aclosing

from perdure.storage.errors import BadSlot
from perdure.storage.log.reader import LogReader
from perdure.storage.log.segments import next_boundary, read_copies


async def read_bodies(log: LogReader, first: int, limit: int) -> list[bytes]:
    """Return the bodies of some slots from `first` on, at most `limit`; none at the log's end.

    Those of segments, which the hashes in their heads check, are not parsed. Raises Missing or
    Damaged for the first slot that cannot be read.
    """
    if cached := await log.read_cached(first, limit):
        return [entry.body for entry in cached]
    bodies: list[bytes] = []
    async with aclosing(read_copies(log.store, await log.lineage(), first, limit)) as reading:
        async for part in reading:
            bodies += part
    if not bodies:
        for slot in await log.read_slots(first, min(limit, next_boundary(first) - first)):
            if isinstance(slot, BadSlot):
                raise slot
            bodies.append(slot.body)
    return bodies
