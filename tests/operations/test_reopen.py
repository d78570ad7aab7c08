"""The recovery of conversations from their logs alone."""

import uuid

import pytest
import temporalio.client

from perdure.client.client import Client
from perdure.client.fork import fork
from perdure.client.ids import new_conversation_id
from perdure.embedded.temporal import TemporalServer
from perdure.errors import NotFound
from perdure.operations.reopen import ReopenResult, reopen, reopen_all
from perdure.storage.keys import conversation_prefix, event_key
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.interrupted_conversations import (
    OUTCOMES,
    InterruptedConversations,
    is_fenced,
    resume_all,
    rewrite_scripts,
    start_interrupted,
)
from tests.temporal.test_register_attributes import create_namespace
from tests.workers import worker_process
from tests.workflows.watching import entries, notes, wait_for_status, wait_until


async def with_new_temporal(harness: ConversationHarness) -> ConversationHarness:
    """Build a harness with the same store and an empty Temporal namespace."""
    fresh = await create_namespace(harness.client.temporal)
    client = Client(fresh, harness.client.store, task_queue=f"new-{uuid.uuid4()}")
    return ConversationHarness(client, harness.resources, harness.folder)


async def reopen_every(client: Client) -> dict[str, ReopenResult]:
    return {item.conversation_id: item async for item in reopen_all(client)}


def outcomes_by_name(
    conversations: InterruptedConversations, results: dict[str, ReopenResult]
) -> dict[str, str]:
    assert len(results) == len(OUTCOMES)
    return {name: results[getattr(conversations, name).id].outcome for name in OUTCOMES}


@pytest.mark.long
async def test_every_conversation_goes_on_from_its_log_and_no_zombie_writes_into_it(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    with worker_process(environment, harness.folder / "zombie.log") as zombie:
        old = await start_interrupted(harness)
        zombie.freeze()
        for item in old.all():
            if await item.workflow.is_running():
                await item.handle.terminate("so that the zombie is not notified")
        before = await old.logs()
        await rewrite_scripts(old)
        new = await with_new_temporal(harness)
        there = old.through_client(new.client)
        async with new.worker():
            assert outcomes_by_name(there, await reopen_every(new.client)) == OUTCOMES
            await resume_all(new, there, before)
            after = await there.logs()
            zombie.thaw()
            for item in (there.charging, there.child):
                await wait_until(lambda item=item: is_fenced(zombie, item))  # type: ignore[misc]
            assert await there.logs() == after


async def test_a_running_conversation_is_left_alone(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 600})), text_answer("charged")
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        before = await entries(talk)
        assert await reopen(harness.client, talk.id) == ReopenResult(talk.id, "running", "running")
        assert await entries(talk) == before
        await talk.close()
        await talk.handle.result()
    assert await reopen(harness.client, talk.id) == ReopenResult(talk.id, "closed", "closed")


async def test_an_unstarted_fork_is_left_alone(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 600})), text_answer("charged")
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        forked = (await fork(harness.client, talk.id)).conversation
        result = await reopen(harness.client, forked.id)
        assert (result.outcome, result.status) == ("at_rest", "running")
        assert result.reason is not None
        assert "nobody has begun" in result.reason
        await forked.resume()
        await wait_for_status(forked, "finished")
        await talk.close()
        await talk.handle.result()
    assert (await reopen(harness.client, forked.id)).outcome == "at_rest"


async def test_a_damaged_log_is_reported_and_the_others_are_reopened(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        first, second = [
            await harness.client.start("hi", harness.spec(text_answer("hello"))) for _ in range(2)
        ]
        await wait_for_status(first, "finished")
        await wait_for_status(second, "finished")
    prefix = conversation_prefix("local", first.id)
    store = harness.client.store
    await store.replace(prefix + "base_state.json", b"{}")
    await store.replace(prefix + event_key(first.id, 1), b"{")
    result = await reopen_every(Client(harness.client.temporal, store, task_queue="nobody"))
    assert {key: report.outcome for key, report in result.items()} == {
        first.id: "damaged",
        second.id: "at_rest",
    }
    assert "The object of seq 1 is damaged" in (result[first.id].reason or "")


async def test_more_conversations_than_the_concurrency_are_all_reported(
    harness: ConversationHarness, temporal: temporalio.client.Client
) -> None:
    store, names = harness.client.store, {new_conversation_id() for _ in range(40)}
    for name in names:
        key = conversation_prefix("anna", name) + event_key(name, 0)
        await store.create(key, b"{")
    other = Client(temporal, store, user_id="anna")
    assert set(await reopen_every(other)) == names
    assert await reopen_every(harness.client) == {}


async def test_an_unknown_conversation_raises_not_found(harness: ConversationHarness) -> None:
    with pytest.raises(NotFound):
        await reopen(harness.client, new_conversation_id())
