"""What an operator sees of the work of all users."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
import temporalio.client

from perdure.agent.policies import Confirmation
from perdure.client.client import Client
from perdure.errors import Conflict
from perdure.operations.overview import Overview, read_overview
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.temporal.test_register_attributes import create_namespace
from tests.workflows.test_worker_kinds import running
from tests.workflows.watching import wait_for_growth, wait_for_status

pytestmark = pytest.mark.long


async def wait_for_overview(
    client: Client, condition: Callable[[Overview], bool], user_id: str | None = None
) -> Overview:
    """Wait until an overview is as it should be: Temporal's figures are a moment behind."""
    async with asyncio.timeout(60):
        while not condition(shown := await read_overview(client, 10, user_id)):
            await asyncio.sleep(0.1)
    return shown


def workers_of(shown: Overview) -> dict[str, int]:
    return {name: state.workers for name, state in shown.queues.items()}


def conversations_shown(count: int) -> Callable[[Overview], bool]:
    return lambda shown: len(shown.conversations) == count


async def test_who_is_at_work_at_what_and_who_waits(harness: ConversationHarness) -> None:
    client, anna = harness.client, harness.client.as_user("anna")
    ask = tool_call_answer(("charge", {"amount": 5, "seconds": 0}))
    async with harness.worker():
        thinking = await client.start("think", harness.spec({"content": "later", "delay": 600}))
        asking = await anna.start(
            "charge", harness.spec(ask, confirmation=Confirmation(policy="always"))
        )
        resting = await anna.start("hi", harness.spec(text_answer("hello")))
        await wait_for_growth(thinking, "llm.chat")
        await wait_for_status(asking, "waiting_for_confirmation")
        await wait_for_status(resting, "finished")
        shown = await wait_for_overview(
            client, lambda shown: shown.counts["finished"] == 1 and len(shown.conversations) == 2
        )
        annas = await wait_for_overview(client, conversations_shown(1), "anna")
        by_id = {item.id: item for item in shown.conversations}
        working, waiting = by_id[thinking.id], by_id[asking.id]
        assert (working.user_id, working.status, working.step) == ("local", "running", "llm.chat")
        assert (waiting.user_id, waiting.status) == ("anna", "waiting_for_confirmation")
        assert waiting.steps == 1
        assert [item.id for item in annas.conversations] == [asking.id]
        assert shown.counts["running"] == shown.counts["waiting_for_confirmation"] == 1
        assert workers_of(shown) == {"workflows": 1, "steps": 1, "models": 0, "tools": 0}
        for talk in (thinking, asking, resting):
            await talk.handle.terminate()


async def test_trouble_comes_first(harness: ConversationHarness) -> None:
    failing = harness.spec({"content": "never", "failures": [{"status": 503}] * 50})
    async with harness.worker():
        fine = await harness.client.start("a", harness.spec({"content": "later", "delay": 600}))
        bad = await harness.client.start("b", failing)
        shown = await wait_for_overview(
            harness.client,
            lambda shown: (
                len(shown.conversations) == 2 and shown.conversations[0].trouble is not None
            ),
        )
        first, second = shown.conversations
        assert (first.id, second.id, second.trouble) == (bad.id, fine.id, None)
        assert first.attempt > 1
        assert "503" in (first.trouble or "")
        for talk in (fine, bad):
            await talk.handle.terminate()


async def test_tasks_that_no_worker_takes_are_shown(harness: ConversationHarness) -> None:
    talk = await harness.client.start("a", harness.spec(text_answer("later")))
    shown = await wait_for_overview(
        harness.client, lambda shown: shown.queues["workflows"].backlog == 1
    )
    assert {state.workers for state in shown.queues.values()} == {0}
    assert shown.queues["workflows"].backlog == 1
    await talk.handle.terminate()


async def test_the_workers_of_a_kind_and_what_waits_for_them_are_shown(
    harness: ConversationHarness,
) -> None:
    """Workers for workflows and for tools run, and nobody asks the model."""
    client = harness.client
    async with running(harness, "workflows"), running(harness, "tools"):
        talk = await client.start("a", harness.spec(text_answer("later")))
        shown = await wait_for_overview(client, lambda shown: shown.queues["models"].backlog == 1)
        assert workers_of(shown) == {"workflows": 1, "steps": 1, "models": 0, "tools": 1}
        await talk.handle.terminate()


async def test_without_search_attributes_a_sentence_says_what_to_do(
    temporal: temporalio.client.Client, harness: ConversationHarness
) -> None:
    bare = replace(harness, client=Client(await create_namespace(temporal), harness.client.store))
    with pytest.raises(Conflict, match="search attributes") as refused:
        await read_overview(bare.client, 10)
    assert "perdure setup temporal" in refused.value.hint
