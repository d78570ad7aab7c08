"""The descriptions of schedules, from what Temporal says of them."""

from collections.abc import Iterable
from datetime import UTC, datetime

from temporalio.client import (
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleDescription,
    ScheduleListDescription,
)

from perdure.api.schedules import Firing, Schedule, ScheduleDefinition
from perdure.client.schedules.ids import firing_conversation_id
from perdure.events.base import TIMESTAMP_FORMAT

DEFINITION, AGENT = "definition", "agent"
"""What the memo of a schedule has: Temporal keeps no crontab, only what it has made of it."""


async def describe(user_id: str, name: str, found: ScheduleDescription) -> Schedule:
    definition = await found.memo_value(DEFINITION, type_hint=ScheduleDefinition)
    info, state = found.info, found.schedule.state
    return Schedule(
        name=name,
        definition=definition,
        agent=await found.memo_value(AGENT, None),
        paused=state.paused,
        note=state.note or "",
        created=to_timestamp(info.created_at),
        firing_count=info.num_actions,
        missed_count=info.num_actions_missed_catchup_window,
        skipped_count=info.num_actions_skipped_overlap,
        next_times=tuple(map(to_timestamp, info.next_action_times)),
        recent_firings=_describe_firings(user_id, definition, info.recent_actions),
    )


async def describe_listed(user_id: str, name: str, found: ScheduleListDescription) -> Schedule:
    definition = await found.memo_value(DEFINITION, type_hint=ScheduleDefinition)
    state = found.schedule.state if found.schedule else None
    times = found.info.next_action_times if found.info else ()
    actions = found.info.recent_actions if found.info else ()
    return Schedule(
        name=name,
        definition=definition,
        agent=await found.memo_value(AGENT, None),
        paused=state.paused if state else False,
        note=(state.note or "") if state else "",
        next_times=tuple(map(to_timestamp, times)),
        recent_firings=_describe_firings(user_id, definition, actions),
    )


def to_timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(TIMESTAMP_FORMAT)


def _describe_firings(
    user_id: str, definition: ScheduleDefinition, actions: Iterable[ScheduleActionResult]
) -> tuple[Firing, ...]:
    return tuple(
        Firing(
            scheduled_at=to_timestamp(result.scheduled_at),
            started_at=to_timestamp(result.started_at),
            conversation_id=definition.conversation_id
            or firing_conversation_id(user_id, result.action.workflow_id),
        )
        for result in actions
        if isinstance(result.action, ScheduleActionExecutionStartWorkflow)
    )
