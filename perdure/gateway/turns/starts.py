"""The slots of a log in which turns begin."""

from collections.abc import AsyncGenerator

from perdure.agent.loop.state import State
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent, UserRejectObservation
from perdure.storage.log.readable import ReadableLog

PAGE_SIZE = 100
"""Entries that are read at once."""


def is_start(state: State, entry: Entry) -> bool:
    """Tell whether a turn can begin with an entry, which comes after this state."""
    match entry.event:
        case MessageEvent(source="user"):
            return True
        case ConversationStateUpdateEvent(key="confirmed") | UserRejectObservation():
            return state.status == "waiting_for_confirmation"
        case ObservationEvent(ended_by="answer" | "time"):
            return state.status == "waiting_for_answer"
        case _:
            return False


async def read_all(log: ReadableLog) -> AsyncGenerator[Entry, None]:
    """Yield all entries of a log."""
    seq = 0
    while entries := await log.read(seq, PAGE_SIZE):
        for entry in entries:
            yield entry
        seq += len(entries)


async def find_answer(log: ReadableLog, after_seq: int) -> int | None:
    """Find the first answer of a person to a call, in the entries that follow a slot."""
    for entry in await log.read(after_seq + 1, PAGE_SIZE):
        match entry.event:
            case ConversationStateUpdateEvent(key="confirmed") | UserRejectObservation():
                return entry.seq
    return None
