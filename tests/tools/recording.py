"""Recording a tool's observation in the log, as an activity does."""

from perdure.events.entry import Origin
from perdure.events.observations import Observation
from perdure.events.tools import ObservationEvent
from perdure.storage.log.event_log import EventLog
from tests.tools.conftest import ToolBench


async def record(place: ToolBench, *observations: Observation) -> None:
    log = log_as_another_worker_reads_it(place)
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


def log_as_another_worker_reads_it(place: ToolBench) -> EventLog:
    log = place.context.log
    return EventLog(log.store, log.user_id, log.conversation_id)
