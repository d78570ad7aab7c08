"""The count of timeouts in a history."""

from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent

from bench.false_alarms import count_timeouts


def started_again(timeout_type: TimeoutType.ValueType) -> HistoryEvent:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    failure = event.activity_task_started_event_attributes.last_failure
    failure.timeout_failure_info.timeout_type = timeout_type
    return event


def task_timed_out(timeout_type: TimeoutType.ValueType) -> HistoryEvent:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT)
    event.workflow_task_timed_out_event_attributes.timeout_type = timeout_type
    return event


def test_a_step_that_began_again_after_its_heartbeat_timed_out_counts() -> None:
    missed = started_again(TimeoutType.TIMEOUT_TYPE_HEARTBEAT)
    late = started_again(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
    first = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED)
    assert count_timeouts([missed, late, first])["heartbeats"] == 1


def test_a_call_that_is_lost_with_its_heartbeat_counts() -> None:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT)
    failure = event.activity_task_timed_out_event_attributes.failure
    failure.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    assert count_timeouts([event])["heartbeats"] == 1


def test_a_workflow_task_counts_once_a_worker_had_begun_it() -> None:
    begun = task_timed_out(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
    waiting = task_timed_out(TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START)
    assert count_timeouts([begun, waiting])["workflow_tasks"] == 1
