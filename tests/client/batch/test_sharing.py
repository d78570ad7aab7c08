"""A batch that its user shares: what a grant covers, and when it ends."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio

from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.ids import new_conversation_id
from perdure.errors import Forbidden, Invalid, NotFound
from perdure.storage.batches import read_current_results
from tests.client.batch.test_isolation import model, table, worlds
from tests.client.strangers import (
    BATCH_CALLS,
    BATCH_READS,
    BATCH_WRITES,
    CALLS,
    READS,
    outcome_of,
)
from tests.harness import ConversationHarness, text_answer

__all__ = ["model", "worlds"]


@pytest_asyncio.fixture
async def mine(worlds: dict[str, ConversationHarness]) -> AsyncIterator[BatchHandle]:
    """A batch of Anna's that has ended."""
    batches = Batches.from_client(worlds["anna"].client)
    handle = await batches.run(table(worlds["anna"], f"sums-{uuid4().hex[:8]}", "anna", 2))
    assert (await handle.wait_until_finished()).scored == 2
    yield handle


def shared_with(harness: ConversationHarness, batch: BatchHandle) -> BatchHandle:
    return Batches.from_client(harness.client).batch(batch.name, "anna")


async def conversation_of(batch: BatchHandle) -> str:
    """Return the id of the conversation of a sample."""
    results = [it async for it in read_current_results(batch.folder, await batch.load_record())]
    return results[0].attempts[0].conversation_id


@pytest.mark.parametrize("access", ["read", "write"])
async def test_a_grant_covers_what_it_says(
    worlds: dict[str, ConversationHarness], mine: BatchHandle, access: str
) -> None:
    await mine.grant("ben", access)  # type: ignore[arg-type]
    theirs = shared_with(worlds["ben"], mine)
    allowed = BATCH_READS if access == "read" else BATCH_READS | BATCH_WRITES
    for name, call in BATCH_CALLS.items():
        kind, text = await outcome_of(call, theirs)
        assert (kind == "Forbidden") == (name not in allowed), (name, text)
        assert kind != "NotFound", (name, text)
    assert [grant.user_id for grant in await mine.grants()] == ["ben"]
    [listed] = await Batches.from_client(worlds["ben"].client).list_shared()
    assert (listed.owner, listed.id, listed.access) == ("anna", mine.name, access)
    for name in ("carl", "ben"):
        batches = Batches.from_client(worlds["ben"].client.as_user(name))
        for handle in (batches.batch(mine.name), batches.batch(mine.name, "carl")):
            with pytest.raises(NotFound):
                await handle.status()


@pytest.mark.long
async def test_the_conversations_of_a_shared_batch_can_be_read_and_no_other(
    worlds: dict[str, ConversationHarness], mine: BatchHandle
) -> None:
    await mine.grant("ben", "write")
    anna, ben = worlds["anna"].client, worlds["ben"].client
    name = await conversation_of(mine)
    theirs = ben.conversation(name, "anna")
    for call_name, call in CALLS.items():
        kind, text = await outcome_of(call, theirs)
        assert (kind == "Forbidden") == (call_name not in READS), (call_name, text)
        assert kind != "NotFound", (call_name, text)
    with pytest.raises(Forbidden, match="not steer"):
        await ben.ask(name, "What?", owner="anna")
    other = await anna.start("Hello?", worlds["anna"].spec(text_answer("Hello.")))
    await other.result()
    for unknown in (other.id, new_conversation_id(), str(uuid4())):
        with pytest.raises(NotFound):
            await ben.conversation(unknown, "anna").status()
    log = shared_with(worlds["ben"], mine).folder.open_log(name)
    assert await log.end() == await anna.conversation(name).log.end()
    forked = await ben.fork(name, owner="anna")
    assert forked.conversation.log.user_id == "ben"
    await mine.revoke("ben")
    for call_name, call in CALLS.items():
        if call_name not in ("workflow_id", "handle"):  # which reach nothing
            assert (await outcome_of(call, theirs))[0] == "NotFound", call_name
    with pytest.raises(NotFound):
        await ben.fork(name, owner="anna")


async def test_a_revocation_takes_effect_at_once(
    worlds: dict[str, ConversationHarness], mine: BatchHandle
) -> None:
    await mine.grant("ben", "write")
    theirs = shared_with(worlds["ben"], mine)
    assert (await theirs.status()).scored == 2
    await mine.revoke("ben")
    await mine.revoke("ben")
    unknown = Batches.from_client(worlds["ben"].client).batch("unknown", "anna")
    for name, call in BATCH_CALLS.items():
        found = await outcome_of(call, theirs, mine.name)
        assert found == await outcome_of(call, unknown, "unknown"), name
        assert found[0] == ("Forbidden" if name == "handle" else "NotFound"), name
    assert await Batches.from_client(worlds["ben"].client).list_shared() == []


async def test_only_what_exists_is_shared_and_with_another_user(
    worlds: dict[str, ConversationHarness], mine: BatchHandle
) -> None:
    with pytest.raises(NotFound):
        await Batches.from_client(worlds["anna"].client).batch("unknown").grant("ben")
    with pytest.raises(Invalid, match="The batch is anna's own"):
        await mine.grant("anna")
    with pytest.raises(Invalid, match="grant read or write"):
        await mine.grant("ben", "all")  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="is not a user id"):
        await mine.grant("b/c")
    with pytest.raises(Invalid, match="is not a user id"):
        Batches.from_client(worlds["ben"].client).batch(mine.name, "b/c")
