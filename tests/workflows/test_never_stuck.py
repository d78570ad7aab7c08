"""A bad deploy or missing workers are reported, and conversations go on afterwards."""

import asyncio
import logging

import pytest
import temporalio.client
from temporalio.worker import Worker

from perdure.activities.log import LogActivities
from perdure.activities.support.task_reader import TaskReader
from perdure.agent.policies import Confirmation
from perdure.client.conversation import Conversation
from perdure.client.description import Description
from perdure.client.diagnosis.failures import load_task_failure
from perdure.embedded.temporal import TemporalServer
from perdure.operations.watchdog import Watchdog
from perdure.storage.log.trouble import load_trouble
from perdure.workflows.conversation import Conversation as RealConversation
from perdure.workflows.sandbox import WorkflowSandbox
from tests.cli.command import Perdure
from tests.client.strangers import as_user, start_as_before
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import worker_process
from tests.workflows.other_code import (
    BrokenConversation,
    NondeterministicConversation,
    OversizedConversation,
)
from tests.workflows.troubles import (
    TROUBLE_TIMEOUT,
    environment,
    other_worker,
    wait_for_trouble,
    wait_until_well,
)
from tests.workflows.watching import wait_for_status, wait_until

pytestmark = pytest.mark.long

ALWAYS = Confirmation(policy="always")


async def wait_until_retried(talk: Conversation) -> Description:
    """Return a description of a workflow whose task was begun more than twice."""
    async with asyncio.timeout(TROUBLE_TIMEOUT):
        while True:
            description = await talk.workflow.describe()
            if description is not None and description.pending_workflow_task.attempt > 2:
                return description
            await asyncio.sleep(0.05)


async def test_broken_code_is_reported_until_a_fixed_version_runs(
    harness: ConversationHarness, temporal_server: TemporalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.worker")
    watchdog = Watchdog(harness.client, interval=0.2)
    perdure = Perdure(environment(harness, temporal_server))
    async with watchdog.watch():
        async with other_worker(harness, BrokenConversation) as suspects:
            talk = await harness.client.start("hi", harness.spec(text_answer("one")))
            status = await wait_for_trouble(
                talk, "workflow task failed", "RuntimeError: the code is broken"
            )
            assert status.status == "idle"
            assert set(suspects) == {talk.workflow_id}
            async with asyncio.timeout(TROUBLE_TIMEOUT):
                while (sentence := await load_trouble(talk.log, 0)) is None:
                    await asyncio.sleep(0.05)
            assert "the code is broken" in sentence
            page = await perdure("status", talk.id)
            assert "\ntrouble      Its workflow task failed" in page.out
            earlier = await wait_until_retried(talk)
        async with harness.worker():
            state = await talk.wait_for_turn()
            await wait_until_well(talk)
            async with asyncio.timeout(TROUBLE_TIMEOUT):
                while not any("goes on" in record.message for record in caplog.records):
                    await asyncio.sleep(0.05)
    assert state.status == "finished"
    assert await load_trouble(talk.log, state.next_seq) is None
    assert await load_task_failure(harness.client.temporal, earlier) == "completed"
    warned = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len([item for item in warned if talk.id in item and "does not go on" in item]) == 1


async def test_the_watchdog_records_the_trouble_of_every_users_conversation(
    harness: ConversationHarness, caplog: pytest.LogCaptureFixture
) -> None:
    annas = as_user(harness, "anna")
    async with other_worker(harness, BrokenConversation):
        today = await annas.client.start("hi", annas.spec(text_answer("one")))
        before = await start_as_before(annas.client, annas.spec(text_answer("one")))
        async with Watchdog(harness.client, interval=0.2).watch(), asyncio.timeout(TROUBLE_TIMEOUT):
            for talk in (today, before):
                while await load_trouble(talk.log, 0) is None:
                    await asyncio.sleep(0.05)
    warned = [record.message for record in caplog.records if "does not go on" in record.message]
    assert {message.split()[1] for message in warned} == {f"anna:{today.id}", before.id}
    for talk in (today, before):
        assert await talk.workflow.is_running()
        await talk.handle.terminate()
        assert await harness.client.store.list(f"users/local/conversations/{talk.id}/") == []


async def test_nondeterministic_code_is_reported_until_the_right_version_runs(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    watchdog = Watchdog(harness.client, interval=0.2)
    async with harness.worker():
        spec = harness.spec(
            tool_call_answer(("add", {"a": 1, "b": 2})), text_answer("two"), confirmation=ALWAYS
        )
        talk = await harness.client.start("hi", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
    async with other_worker(harness, NondeterministicConversation):
        await talk.send("never mind", message_id="m")
        await wait_for_trouble(talk, "does not fit its history")
        async with watchdog.watch(), asyncio.timeout(TROUBLE_TIMEOUT):
            while await load_trouble(talk.log, await talk.log.end()) is None:
                await asyncio.sleep(0.05)
        listing = await Perdure(environment(harness, temporal_server))("ls")
        assert "\tstalled\t" in listing.out
    async with harness.worker():
        assert (await talk.wait_for_turn("m")).status == "finished"
        await wait_until_well(talk)


async def test_a_payload_too_large_for_temporal_is_reported(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    careless = await temporalio.client.Client.connect(temporal_server.address)
    async with other_worker(harness, OversizedConversation, careless):
        talk = await harness.client.start("hi", harness.spec(text_answer("one")))
        await wait_for_trouble(talk, "too large", "`perdure resume`")
        await talk.handle.terminate("as it was told")
    async with harness.worker():
        await talk.start("hi", harness.spec(text_answer("one")))
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


async def test_an_unknown_activity_is_reported_until_a_worker_knows_it(
    harness: ConversationHarness,
) -> None:
    client, log = harness.client, LogActivities(harness.resources)
    spec = harness.spec(text_answer("one"))
    async with Worker(
        client.temporal,
        task_queue=client.task_queue,
        workflows=[RealConversation],
        activities=[log.open, log.append, log.prepare, log.save, log.close],
        interceptors=[TaskReader()],
        workflow_runner=WorkflowSandbox(),
    ):
        talk = await client.start("hi", spec)
        await wait_for_trouble(talk, "does not know its step llm.chat", "another version")
    async with harness.worker():
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


async def test_missing_workers_are_reported_until_one_starts(harness: ConversationHarness) -> None:
    talk = await harness.client.start("hi", harness.spec(text_answer("one")))
    await wait_for_trouble(talk, "No worker has taken it up", "perdure worker")
    async with harness.worker():
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


async def test_a_worker_logs_conversations_that_do_not_go_on(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    log = harness.folder / "worker.log"
    away = [{"status": 429, "retry_after": 600, "message": "too many"}]
    with worker_process(environment(harness, temporal_server), log):
        talk = await harness.client.start("hi", harness.spec({"content": "one", "failures": away}))
        wanted = f"conversation {talk.id} does not go on: The model does not answer"
        await wait_until(lambda: wanted in log.read_text())
        await talk.interrupt()
        await wait_until(lambda: f"conversation {talk.id} goes on" in log.read_text())
    assert log.read_text().count(wanted) == 1
