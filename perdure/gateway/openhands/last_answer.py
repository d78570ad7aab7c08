"""The last words of an agent, read from the end of its log."""

from perdure.events.content import join_text
from perdure.events.event import AnyEvent, agent_text
from perdure.events.messages import MessageEvent
from perdure.events.observations import FinishObservation
from perdure.events.tools import ObservationEvent
from perdure.storage.log.readable import ReadableLog

PAGE = 100


async def read_last_answer(log: ReadableLog) -> str:
    """Return what the agent said last, in words or by `finish`; nothing if it has said nothing.

    Raises StoreError.
    """
    end = await log.end()
    while end > 0:
        begin = max(0, end - PAGE)
        for entry in reversed(await log.read(begin, end - begin)):
            if (text := answer_text(entry.event)) is not None:
                return text
        end = begin
    return ""


def answer_text(event: AnyEvent) -> str | None:
    """Return what an agent says in an event; None if it says nothing there."""
    match event:
        case MessageEvent(source="agent"):
            return agent_text(event)
        case ObservationEvent(observation=FinishObservation() as result):
            return join_text(result.content)
        case _:
            return None
