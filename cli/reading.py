"""Reading a log for people: what cannot be read is named, and the rest is shown."""

from collections.abc import AsyncIterator

from agent.state import State, fold
from client.errors import NotFound
from events.entry import Entry
from events.projection import digest
from storage.conversations import exists
from storage.errors import Damaged
from storage.log import EventLog
from storage.reader import Slot
from storage.state import state_of

PAGE = 100


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
        return is_over(state)

    async for entry in log.tail(after, idle=rests):
        state = fold(state, [digest(entry)])
        yield entry


def is_over(state: State) -> bool:
    """Whether the agent's turn is over; one that has not begun is not."""
    begun = state.turn > 0 or state.status != "idle"
    return begun and state.at_rest and not state.pending
