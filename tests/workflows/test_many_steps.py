"""A step beside so many others of its process that each heartbeats rarely."""

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.bridge.proto.workflow_activation import WorkflowActivation

from perdure.events.tools import AgentErrorEvent
from perdure.temporal import heartbeats
from perdure.temporal.heartbeats import RunSteps
from tests.harness import ConversationHarness, tool_call_answer
from tests.temporal.test_heartbeats import schedule
from tests.workflows.watching import events, notes, wait_for_status, wait_until


async def test_an_interrupt_reaches_a_step_that_heartbeats_rarely(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = RunSteps("others", {"perdure"})
    others.follow(WorkflowActivation(), [schedule(seq) for seq in range(160)])
    monkeypatch.setattr(heartbeats, "choose_interval", lambda *_: 3600.0)
    spec = harness.spec(tool_call_answer(("charge", {"amount": 5, "seconds": 60})))
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        await talk.interrupt()
        await wait_for_status(talk, "idle")
        history = await talk.handle.fetch_history()
    [stopped] = await events(talk, AgentErrorEvent)
    assert stopped.classification == "interrupted"  # and not "outcome_unknown", of a lost worker
    timeouts = [
        event.activity_task_scheduled_event_attributes.heartbeat_timeout.ToTimedelta()
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert min(it.total_seconds() for it in timeouts) >= 10.0  # a sixteenth of 160, or of more
