"""A wait of a week goes on through deploys, the loss of its worker and that of its run."""

import asyncio
import contextlib
from datetime import datetime, timedelta

import pytest

from perdure.client import workflow
from perdure.client.conversation import Conversation as Talk
from perdure.events.tools import ObservationEvent
from perdure.events.waiting import WaitEvent
from perdure.operations.deploy import deploy
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.new_code import NewerConversation
from tests.workflows.test_deploy import builds, runs, version
from tests.workflows.troubles import TROUBLE_TIMEOUT
from tests.workflows.watching import events, wait_for_status

pytestmark = pytest.mark.long

WEEK = ("wait", {"for": "1w", "signal": "paid"})


async def start(harness: ConversationHarness, idle_timeout: float = 3600.0) -> Talk:
    answers = (tool_call_answer(WEEK), text_answer("done"))
    spec = harness.spec(*answers, tools=("wait", "finish"), idle_timeout=idle_timeout)
    talk = await harness.client.start("go", spec)
    await wait_for_status(talk, "waiting")
    return talk


async def newest_build(talk: Talk) -> set[str]:
    return builds((await runs(talk))[-1])


async def test_a_wait_is_one_timer_and_costs_nothing_meanwhile(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await start(harness)
        await asyncio.sleep(1)
        before = (await talk.handle.fetch_history()).events
        await asyncio.sleep(3)
        after = (await talk.handle.fetch_history()).events
    timers = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in after
        if event.HasField("timer_started_event_attributes")
    ]
    assert len(after) == len(before)
    assert len(timers) == 1
    assert timedelta(days=6, hours=23) < timers[0] <= timedelta(days=7)


async def test_a_wait_moves_to_a_new_version_and_outlives_its_workers(
    harness: ConversationHarness,
) -> None:
    temporal, queue = harness.client.temporal, harness.client.task_queue
    async with contextlib.AsyncExitStack() as old:
        await old.enter_async_context(version(harness, "1"))
        await deploy(temporal, queue, "1", max_wait=TROUBLE_TIMEOUT)
        talk = await start(harness, idle_timeout=0.5)
        async with version(harness, "2", NewerConversation):
            await deploy(temporal, queue, "2", max_wait=TROUBLE_TIMEOUT)
            async with asyncio.timeout(60):
                while await newest_build(talk) != {"2"}:
                    await asyncio.sleep(0.2)
            await old.aclose()
            assert (await wait_for_status(talk, "waiting")).detail is not None
    async with version(harness, "2", NewerConversation):
        assert (await talk.signal("paid", {"amount": 12})).taken
        assert (await talk.wait_for_turn()).status == "finished"
    [wait] = await events(talk, WaitEvent)
    [result] = await events(talk, ObservationEvent)
    assert wait.until is not None
    begun, until = map(datetime.fromisoformat, (wait.timestamp, wait.until))
    assert until - begun == timedelta(days=7)
    assert result.ended_by == "signal"


async def test_a_wait_goes_on_in_a_run_that_continues_as_new(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "MAX_RUN_EVENTS", 200)
    count = 20  # signals, each recorded by a step, of more than 12 history events
    async with harness.worker():
        talk = await start(harness)
        for number in range(count):
            await talk.signal(f"s{number}")
        state = await talk.state()
        assert (state.status, len(state.signals)) == ("waiting", count)
        assert len(await runs(talk)) > 1
        assert (await talk.signal("paid")).taken
        state = await talk.wait_for_turn()
    assert (state.status, len(state.signals)) == ("finished", count)
