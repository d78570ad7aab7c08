"""Searching conversations in Temporal."""

import asyncio
import uuid

from temporalio.api.enums.v1 import EventType

from perdure.agent.policies import Confirmation
from perdure.client.client import Client
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.watching import wait_for_status


async def until_found(client: Client, query: str) -> str:
    """The id of the one workflow of the query, once Temporal has indexed it."""
    async with asyncio.timeout(60):
        while not (
            ids := [workflow.id async for workflow in client.temporal.list_workflows(query)]
        ):
            await asyncio.sleep(0.05)
    [only] = ids
    return only


async def test_a_conversation_is_found_by_its_status_while_it_has_it_and_no_longer(
    harness: ConversationHarness,
) -> None:
    tag = str(uuid.uuid4())
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("done"),
        confirmation=Confirmation(policy="always"),
        tags=(tag,),
    )
    waiting, finished = (
        f'PerdureStatus="{status}" AND PerdureTags="{tag}"'
        for status in ("waiting_for_confirmation", "finished")
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        assert await until_found(harness.client, waiting) == talk.workflow_id
        [call] = (await talk.status()).pending
        await talk.respond(accept=True, calls=[call.tool_call_id])
        await wait_for_status(talk, "finished")
        assert await until_found(harness.client, finished) == talk.workflow_id
    assert not [workflow async for workflow in harness.client.temporal.list_workflows(waiting)]


async def test_a_conversation_starts_with_the_attributes_of_its_first_turn(
    harness: ConversationHarness,
) -> None:
    tag = str(uuid.uuid4())
    spec = harness.spec(text_answer("done"), tags=(tag,))
    talk = await harness.client.start("hello", spec)
    running = f'PerdureStatus="running" AND PerdureTags="{tag}" AND PerdureSteps=0'
    assert await until_found(harness.client, running) == talk.workflow_id
    async with harness.worker():
        await wait_for_status(talk, "finished")
        await until_found(harness.client, f'PerdureStatus="finished" AND PerdureTags="{tag}"')
    upserts = [
        event.upsert_workflow_search_attributes_event_attributes
        async for event in talk.handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
    ]
    [upsert] = upserts
    changed = set(upsert.search_attributes.indexed_fields)
    assert changed == {"PerdureStatus", "PerdureSteps", "PerdureLastActivity"}
