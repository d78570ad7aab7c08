"""The number of heartbeats of a step, which Temporal's cloud bills."""

import asyncio

import pytest

from perdure.client.workflow import ConversationWorkflow
from perdure.embedded.temporal import TemporalServer
from tests.harness import ConversationHarness
from tests.workers import worker_process
from tests.workflows.troubles import environment

SECONDS = 4.0
INTERVAL = 2.0


@pytest.mark.long
async def test_a_step_heartbeats_no_more_often_than_the_settings_say(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    variables = {
        **environment(harness, temporal_server),
        "PERDURE_HEARTBEAT_INTERVAL": f"{INTERVAL}",
    }
    spec = harness.spec({"content": "later", "delay": 600}, heartbeat_timeout=30)
    with worker_process(variables, harness.folder / "worker.log"):
        talk = await harness.client.start("think", spec)
        beats = set[float]()
        async with asyncio.timeout(60):
            while not beats:  # the model is being asked
                beats |= await list_heartbeats(talk.workflow)
        async with asyncio.timeout(SECONDS + 60):
            until = asyncio.get_running_loop().time() + SECONDS
            while asyncio.get_running_loop().time() < until:
                beats |= await list_heartbeats(talk.workflow)
                await asyncio.sleep(0.02)
    await talk.handle.terminate()
    assert len(beats) <= 1 + SECONDS / INTERVAL + 1  # of four a second it would be 16


async def list_heartbeats(workflow: ConversationWorkflow) -> set[float]:
    """Return the times of the newest heartbeats of the steps that ask a model."""
    described = await workflow.describe()
    assert described is not None
    steps = described.pending_activities
    return {
        step.last_heartbeat_time.ToMilliseconds() / 1000
        for step in steps
        if step.activity_type.name == "llm.chat" and step.HasField("last_heartbeat_time")
    }
