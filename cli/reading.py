"""Reading a log for people: what cannot be read is named, and the rest is shown."""

from collections.abc import AsyncIterator
from typing import Any

from agent.evolve import fold
from client.conversation import turn_is_over
from client.errors import NotFound
from events.content import text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.projection import digest
from storage.conversations import exists
from storage.errors import Damaged
from storage.log import EventLog
from storage.reader import Slot
from storage.state import state_of

PAGE = 100

FIRST = 8
"""How many of the first events are looked through for what was asked for."""

TITLE = 60
"""Characters of the first message that make a title."""


async def must_exist(log: EventLog) -> None:
    """Raises NotFound where nothing was ever recorded."""
    if not await exists(log.store, log.user_id, log.conversation_id):
        raise NotFound(
            f"There is no conversation {log.conversation_id}.",
            "`perdure ls` lists them; one that was started a moment ago has no events before a "
            "worker takes it up.",
        )


async def written(log: EventLog, after: int) -> AsyncIterator[Slot]:
    """Every slot after slot `after` that there is by now."""
    while page := await log.readable(after + 1, PAGE):
        for slot in page:
            yield slot
        after = page[-1].seq


async def followed(log: EventLog, after: int) -> AsyncIterator[Slot]:
    """Every slot after slot `after`, and each new one as it is written; without end."""
    async for slot in written(log, after):
        yield slot
        after = slot.seq
    while True:
        try:
            async for entry in log.tail(after):
                yield entry
                after = entry.seq
        except Damaged as error:
            yield error
            after = error.seq


async def to_rest(log: EventLog, after: int) -> AsyncIterator[Entry]:
    """Every entry after slot `after` up to the end of the turn. Raises Damaged and Missing."""
    state = await state_of(log)

    async def rests() -> bool:
        return turn_is_over(state)

    async for entry in log.tail(after, idle=rests):
        state = fold(state, [digest(entry)])
        yield entry


async def first_words(log: EventLog) -> str | None:
    """The title of a conversation that was given none: how its first message begins."""
    for slot in await log.readable(0, FIRST):
        event: Any = slot.event if isinstance(slot, Entry) else None
        if isinstance(event, MessageEvent):
            text = " ".join(text_of(event.llm_message.content).split())
            return text if len(text) <= TITLE else f"{text[:TITLE]}..."
    return None
