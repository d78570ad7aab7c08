"""What an operator finds in Temporal."""

import asyncio
import uuid

from agent.spec import Confirmation
from client.client import Client
from tests.house import House, calls, says
from tests.workflows.watching import until


async def until_found(client: Client, query: str) -> str:
    """The id of the one workflow of the query, once Temporal has indexed it."""
    async with asyncio.timeout(60):
        while not (found := [one.id async for one in client.temporal.list_workflows(query)]):
            await asyncio.sleep(0.05)
    [only] = found
    return only


async def test_a_conversation_is_found_by_its_status_while_it_has_it_and_no_longer(
    house: House,
) -> None:
    tag = str(uuid.uuid4())
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})),
        says("done"),
        confirmation=Confirmation(policy="always"),
        tags=(tag,),
    )
    waiting, finished = (
        f'PerdureStatus="{status}" AND PerdureTags="{tag}"'
        for status in ("waiting_for_confirmation", "finished")
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        assert await until_found(house.client, waiting) == talk.workflow_id
        [call] = (await talk.status()).pending
        await talk.respond(accept=True, calls=[call.tool_call_id])
        await until(talk, "finished")
        assert await until_found(house.client, finished) == talk.workflow_id
    assert not [one async for one in house.client.temporal.list_workflows(waiting)]
