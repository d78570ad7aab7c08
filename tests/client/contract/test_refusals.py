"""A refusal says the same, and is of the same class, through a gateway and without one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Forbidden, NotFound
from perdure.events.entry import Entry
from tests.client.contract.clients import Clients, open_clients
from tests.client.strangers import OWNERS, READS, WRITES, outcome_of
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

# Of these the library has the workflow at hand, which a gateway keeps to itself.
CALLS = {
    name: call
    for name, call in (READS | WRITES | OWNERS).items()
    if name not in ("workflow_id", "handle")
}


def without_owner(outcome: tuple[str, str]) -> tuple[str, str]:
    return outcome[0], outcome[1].replace("anna/", "")


async def outcomes(
    clients: Clients, harness: ConversationHarness
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return what each call comes to on what there is not, what is closed, and what is Anna's."""
    async with harness.worker():
        spec = harness.spec(text_answer("One."))
        closed = await clients.anna.start("First.", spec)
        await closed.result()
        await closed.close()
        async for entry in closed.events():
            if b'"closed"' in entry.body:
                break
        shared = await clients.anna.start("First.", harness.spec(text_answer("One.")))
        await shared.result()
        await shared.grant("ben", "read")
        unknown = new_conversation_id()
        targets: dict[str, ConversationHandle] = {
            "unknown": clients.anna.conversation(unknown),
            "of another": clients.ben.conversation(closed.id),
            "not shared": clients.ben.conversation(closed.id, "anna"),
            "to be read": clients.ben.conversation(shared.id, "anna"),
            "closed": clients.anna.conversation(closed.id),
        }
        found = {}
        for target, conversation in targets.items():
            for name, call in CALLS.items():
                if name == "start" or (target == "closed" and name not in WRITES):
                    continue
                outcome = await outcome_of(call, conversation, conversation.id)
                found[target, name] = without_owner(outcome)
        return found


async def test_every_call_is_refused_in_the_same_words(harness: ConversationHarness) -> None:
    async with open_clients(harness, "library") as clients:
        expected = await outcomes(clients, harness)
    async with open_clients(harness, "gateway") as clients:
        served = await outcomes(clients, harness)
    refusals = {key for key, (kind, _) in expected.items() if kind in ("NotFound", "Forbidden")}
    assert len(refusals) > 40
    differing = {
        key: (expected[key], served[key])
        for key in expected
        if (key in refusals or "Conflict" in expected[key][0]) and expected[key] != served[key]
    }
    assert differing == {}


async def exhaust(events: AsyncIterator[Entry]) -> None:
    async for _ in events:
        pass


async def test_a_revocation_takes_effect_at_once(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(*map(text_answer, ("One.", "Two.")))
        conversation = await clients.anna.start("First.", spec)
        await conversation.result()
        await conversation.grant("ben", "write")
        assert [grant.user_id for grant in await conversation.grants()] == ["ben"]
        shared = clients.ben.conversation(conversation.id, "anna")
        events = shared.events()
        await anext(events)
        await shared.send("Second.")
        assert (await shared.result()).text == "Two."
        with pytest.raises(Forbidden, match="Only anna can do that"):
            await shared.grant("carl")
        await conversation.revoke("ben")
        for call in (shared.state, shared.status, shared.values):
            with pytest.raises(NotFound):
                await call()
        with pytest.raises(NotFound):
            await asyncio.wait_for(exhaust(events), 30)
        assert await conversation.grants() == []
