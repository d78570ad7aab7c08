"""Making segments: of a thousand slots once they are full, of fewer once a conversation is closed.

Nothing depends on them. What they and the tail say of a slot is what `verify` holds against it.
"""

from events.entry import Entry
from storage.errors import Damaged
from storage.keys import segment_key
from storage.lineage import Holder
from storage.reader import LogReader
from storage.segments import Tail, keep_tail, next_boundary, packed, ranges, tail_of


async def seal(log: LogReader, end: int, closing: bool = False) -> None:
    """See to it that every slot of the conversation's own before `end` is in a segment or the tail.

    With `closing` all of them are in segments. Often repeated it asks for the tail, and for what
    is new. Raises Missing and Damaged where a slot cannot be read, or is not what it was.
    """
    holder = (await log.lineage())[0]
    tail = await _known(log, holder)
    while tail.first < end and (closing or next_boundary(tail.first) <= end):
        upto = min(end, next_boundary(tail.first))
        entries = await log.read(tail.first, upto - tail.first)
        _hold(tail, holder, entries)
        place = holder.prefix + segment_key(tail.first, upto)
        await log.store.create(place, packed(entries))
        tail = Tail(first=upto, shas=tail.shas[upto - tail.first :])
        await keep_tail(log.store, holder, tail)
    if tail.end < end:
        new = await log.read(tail.end, end - tail.end)
        shas = (*tail.shas, *(entry.sha for entry in new))
        await keep_tail(log.store, holder, Tail(first=tail.first, shas=shas))


async def _known(log: LogReader, holder: Holder) -> Tail:
    """The tail; where it was lost, it begins anew behind the last segment."""
    try:
        found = await tail_of(log.store, holder)
    except ValueError:
        found = None
    if found is None:
        sealed = [end for _, end in await ranges(log.store, holder)]
        found = Tail(first=max([holder.first, *sealed]))
    return found


def _hold(tail: Tail, holder: Holder, entries: list[Entry]) -> None:
    """What was altered since the tail was written must not become a copy of itself."""
    for entry, sha in zip(entries, tail.shas, strict=False):
        if entry.sha != sha:
            raise Damaged(entry.seq, holder.key(entry.seq))
