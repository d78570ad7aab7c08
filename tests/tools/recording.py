"""Putting on record what a tool returned, as the step that calls it does."""

from events.entry import Origin
from events.observations import Observation
from events.tools import ObservationEvent
from storage.log import EventLog
from tests.tools.conftest import Place


async def record(place: Place, *observations: Observation) -> None:
    log = place.context.log
    for observation in observations:
        end = await log.end()
        event = ObservationEvent(
            timestamp="2026-03-01T09:00:00.000000",
            action_id=f"action-{end}",
            tool_name="any",
            tool_call_id=f"call-{end}",
            observation=observation,
        )
        await log.append([event], base=end, origin=Origin(run="run", activity=f"{end}"))


def log_as_another_worker_reads_it(place: Place) -> EventLog:
    log = place.context.log
    return EventLog(log.store, log.user_id, log.conversation_id)
