"""Finding conversations, over the library and over a gateway."""

import asyncio

import pytest

from perdure.api.conversations import Page
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from perdure.storage.keys import index_prefix
from perdure.storage.list_index import load_index
from perdure.storage.reindex import reindex
from tests.client.contract.clients import Clients
from tests.harness import text_answer


async def start(clients: Clients, text: str, **fields: object) -> ConversationHandle:
    spec = clients.harness.spec(text_answer("One."), text_answer("Two."), **fields)
    conversation = await clients.anna.start(text, spec)
    await conversation.result()
    return conversation


async def find(client: ConversationClient, **wanted: object) -> list[str]:
    return ids(await client.find_conversations(**wanted))  # type: ignore[arg-type]


def ids(page: Page) -> list[str]:
    return [item.id for item in page.items]


async def test_conversations_are_found_by_what_they_are(clients: Clients) -> None:
    async with clients.harness.worker():
        one = await start(clients, "Bake bread.", app_name="kitchen", agent="cook", tags=("a",))
        two = await start(clients, "Bake cake.", app_name="kitchen", agent="baker")
        three = await start(clients, "Mend shoes.", hidden=True)
        assert set(await find(clients.anna)) == {one.id, two.id}
        assert set(await find(clients.anna, hidden=True)) == {one.id, two.id, three.id}
        assert set(await find(clients.anna, app="kitchen")) == {one.id, two.id}
        assert await find(clients.anna, app="garage") == []
        assert await find(clients.anna, agent="cook") == [one.id]
        assert await find(clients.anna, tag="a") == [one.id]
        assert await find(clients.anna, text="CAKE bake") == [two.id]
        assert await find(clients.anna, status="error") == []
        await one.close()
        await clients.workflow(one.id).result()  # its state is saved
        assert await find(clients.anna, active=True) == [two.id]
        assert await find(clients.anna, status="closed") == [one.id]
        assert await find(clients.ben, hidden=True) == []
        [shown] = (await clients.anna.find_conversations(agent="baker")).items
        assert (shown.owner, shown.status.app_name, shown.status.agent) == (
            "anna",
            "kitchen",
            "baker",
        )


async def test_the_newest_activity_comes_first_whatever_became_of_the_index(
    clients: Clients,
) -> None:
    store = clients.harness.client.store
    async with clients.harness.worker():
        first, second, third = [await start(clients, text) for text in ("a", "b", "c")]
        await first.send("Again.")
        await first.result()
        turns = {first.id: 2, second.id: 1, third.id: 1}
        async with asyncio.timeout(30):
            while await indexed_turns(clients) != turns:
                await asyncio.sleep(0.05)
    expected = [first.id, third.id, second.id]
    assert await find(clients.anna) == expected
    pages = [await clients.anna.find_conversations(2)]
    pages.append(await clients.anna.find_conversations(2, pages[0].next_cursor))
    assert [ids(page) for page in pages] == [expected[:2], expected[2:]]
    assert pages[1].next_cursor is None
    for key in await store.list(index_prefix("anna")):
        await store.delete(key)
    assert set(await find(clients.anna)) == set(expected)
    assert set((await load_index(store, "anna")).merge()) == set(expected), "reading mends it"
    for key in await store.list(index_prefix("anna")):
        await store.delete(key)
    assert await reindex(store, "anna") == 3
    assert await find(clients.anna) == expected


async def indexed_turns(clients: Clients) -> dict[str, int]:
    """Return the turns that the index knows, once what was noted is written."""
    await clients.harness.resources.list_notes.flush()
    lines = (await load_index(clients.harness.client.store, "anna")).merge()
    summaries = {name: line.decode() for name, line in lines.items()}
    return {name: summary.turn for name, summary in summaries.items() if summary is not None}


async def test_bad_pages_are_refused(clients: Clients) -> None:
    with pytest.raises(Invalid, match="cursor"):
        await clients.anna.find_conversations(cursor="nonsense")
    with pytest.raises(Invalid):
        await clients.anna.find_conversations(0)
    with pytest.raises(Invalid):
        await clients.anna.find_conversations(101)


async def test_a_conversation_is_described_with_its_state(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("Hi."), app_name="kitchen", agent="cook")
        conversation = await clients.anna.start(None, spec, title="Bread")
        await conversation.note(state={"step": 1, "user:tone": "dry"})
        shown = await conversation.describe()
        assert (shown.id, shown.owner, shown.status.title) == (conversation.id, "anna", "Bread")
        assert (shown.status.app_name, shown.status.agent) == ("kitchen", "cook")
        assert shown.status.status == "idle"
        assert shown.state == {"step": 1, "user:tone": "dry"}
        assert shown.updated is not None
        assert (await conversation.describe(with_state=False)).state is None
        with pytest.raises(NotFound):
            await clients.ben.conversation(conversation.id).describe()


async def test_a_deleted_conversation_is_closed_and_in_no_list(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start(clients, "Go.")
        await conversation.grant("ben", "write")
        with pytest.raises((Forbidden, NotFound)):
            await clients.ben.conversation(conversation.id, "anna").delete()
        with pytest.raises(NotFound):
            await clients.ben.conversation(conversation.id).delete()
        await conversation.delete()
        assert await find(clients.anna, hidden=True) == []


async def test_a_closed_conversation_is_opened_again_by_a_message_that_asks_for_it(
    clients: Clients,
) -> None:
    async with clients.harness.worker():
        conversation = await start(clients, "Go.")
        await conversation.close()
        await wait_for(conversation, "closed")
        with pytest.raises(Conflict, match="is closed"):
            await conversation.send("Go on.")
        recorded = await conversation.submit("Go on.", reopen=True)
        state = await conversation.wait_for_turn(after=recorded.seq - 1)
        assert (state.status, state.turn) == ("finished", 2)
        assert (await conversation.result()).text == "Two."
        await conversation.close()
        await wait_for(conversation, "closed")
        await conversation.send("Again.", reopen=True)
        async with asyncio.timeout(30):
            while (await conversation.state()).turn < 3:
                await asyncio.sleep(0.05)
        stranger = clients.ben.conversation(conversation.id)
        with pytest.raises(NotFound):
            await stranger.send("Mine.", reopen=True)


async def wait_for(conversation: ConversationHandle, status: str) -> None:
    async with asyncio.timeout(30):
        while (await conversation.state()).status != status:
            await asyncio.sleep(0.05)
