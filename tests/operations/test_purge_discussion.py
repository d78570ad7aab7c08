"""Discussions that are deleted for good, and what their ids may be used for afterwards."""

import asyncio

import pytest

from perdure.client.discussion.discussions import Discussions
from perdure.errors import Conflict, NotFound
from perdure.operations.purge_discussion import list_discussion_targets, purge_discussion
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import PASS, debate, lines, wants


@pytest.mark.long
async def test_the_id_of_a_deleted_discussion_is_free_for_another(
    harness: ConversationHarness,
) -> None:
    client, discussions = harness.client, Discussions.from_client(harness.client)
    first = debate(harness.folder, {"ada": [wants(1), "First."], "bob": [PASS]})
    second = debate(harness.folder, {"ada": [wants(1), "Second."]})
    async with harness.worker():
        handle = await discussions.start(first, "talk")
        await handle.result()
        targets = await list_discussion_targets(client, "talk")
        assert targets == [handle.conversation_id(name) for name in ("ada", "bob")]
        purged = await purge_discussion(client, "talk", targets)
        assert purged.objects.keys() == {"talk", *targets}
        assert purged.histories >= 3
        with pytest.raises(NotFound):
            await list_discussion_targets(client, "talk")
        async with asyncio.timeout(60):
            handle = await discussions.start(second, "talk")
            assert (await handle.result()).status == "finished"
        said = lines([event async for event in handle.events()])
    assert "SPEECH ada: Second." in said
    assert "SPEECH ada: First." not in said


@pytest.mark.long
async def test_a_discussion_that_runs_is_deleted_by_force_alone(
    harness: ConversationHarness,
) -> None:
    client, discussions = harness.client, Discussions.from_client(harness.client)
    endless = debate(harness.folder, {"ada": [{"content": "one two", "chunk_delay": 60}]})
    async with harness.worker():
        handle = await discussions.start(endless, "endless")
        async with asyncio.timeout(60):
            while not (await handle.status()).speaking:
                await asyncio.sleep(0.05)
        with pytest.raises(Conflict, match="is running"):
            await list_discussion_targets(client, "endless")
        targets = await list_discussion_targets(client, "endless", force=True)
        await purge_discussion(client, "endless", targets)
        with pytest.raises(NotFound):
            await handle.spec()
        assert await client.store.list("users/local/discussions/endless/") == []
