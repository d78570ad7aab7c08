"""Messages that came again after their ids were forgotten: the log still has them."""

from collections.abc import Collection, Mapping, Sequence

from perdure.agent.loop.inbox import (
    CloseRequest,
    InboxItem,
    InterruptRequest,
    UserMessage,
    WaitEnd,
)
from perdure.events.entry import parse_entry
from perdure.events.messages import MessageEvent
from perdure.storage.log.bodies import read_bodies
from perdure.storage.log.event_log import EventLog

PAGE_SIZE = 1_000
"""Slots that are searched at once, the newest first."""


async def find_messages(log: EventLog, ids: Collection[str], before: int) -> dict[str, int]:
    """Return the slots of the messages with these ids among the first `before` slots."""
    missing, found, end = set(ids), dict[str, int](), before
    while missing and end > 0:
        first = max(0, end - PAGE_SIZE)
        bodies = await read_bodies_between(log, first, end)
        for seq, body in reversed(list(enumerate(bodies, first))):
            if any(name.encode() in body for name in missing):  # most are not parsed
                event = parse_entry(seq, body).event
                if isinstance(event, MessageEvent) and event.message_id in missing:
                    found[event.message_id] = seq
                    missing.remove(event.message_id)
        end = first
    return found


async def read_bodies_between(log: EventLog, first: int, end: int) -> list[bytes]:
    bodies: list[bytes] = []
    while first + len(bodies) < end:
        more = await read_bodies(log, first + len(bodies), end - first - len(bodies))
        if not more:
            break
        bodies += more
    return bodies


def is_provoked(items: Sequence[InboxItem], repeated: Mapping[str, int]) -> bool:
    """Tell whether anything but messages that came again asks for a refusal."""
    return not repeated or any(
        item.message_id not in repeated
        if isinstance(item, UserMessage)
        else isinstance(item, InterruptRequest | CloseRequest)
        for item in items
    )


def is_end_by_repeated_message(
    item: InboxItem, items: Sequence[InboxItem], repeated: Mapping[str, int]
) -> bool:
    """Tell whether a wait would be ended by messages that came again, and by nothing else."""
    return (
        isinstance(item, WaitEnd)
        and item.ended_by == "message"
        and item.has_begun
        and not is_provoked(items, repeated)
    )
