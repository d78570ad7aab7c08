"""Forks of conversations that others share: the fork is its maker's own."""

import pytest

from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, Forbidden, NotFound
from perdure.events.content import TextContent
from perdure.events.messages import MessageEvent
from perdure.operations.purge import list_purge_targets, purge
from perdure.storage.log.fork import forks_of
from perdure.storage.log.verify import verify
from tests.client.strangers import as_user, client_of
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.test_workspace import on_machine

WRITE = {"command": "create", "path": "plan.txt", "file_text": "Anna's plan\n"}


async def start_annas(harness: ConversationHarness) -> Conversation:
    """Start a conversation of Anna's with a file, and values of hers."""
    annas = as_user(harness, "anna")
    spec = annas.spec(
        tool_call_answer(("file_editor", WRITE)),
        text_answer("One."),
        tool_call_answer(("file_editor", {**WRITE, "path": "more.txt"})),
        text_answer("Two."),
        tools=("file_editor", "think"),
    )
    conversation = await annas.client.start("Plan it.", spec)
    await conversation.result()
    await conversation.note(state={"color": "blue", "user:home": "Anna's"})
    return conversation


async def texts_of(conversation: Conversation) -> list[str]:
    entries = await conversation.log.read(0, await conversation.log.end())
    events = [entry.event for entry in entries if isinstance(entry.event, MessageEvent)]
    parts = [part for event in events for part in event.llm_message.content]
    return [part.text for part in parts if isinstance(part, TextContent)]


async def all_of(client: Client, user_id: str) -> dict[str, bytes | None]:
    keys = await client.store.list(f"users/{user_id}/")
    return {key: await client.store.read(key) for key in keys}


SAVED_AT_REST = {"tail", "base_state.json"}
"""What the workflow of a conversation saves by itself a moment after its turn."""


async def test_a_fork_of_what_is_shared_is_the_users_own(harness: ConversationHarness) -> None:
    harness = await on_machine(harness, "here")  # which keeps files
    ben = client_of(harness, "ben")
    async with harness.worker():
        annas = await start_annas(harness)
        with pytest.raises(NotFound):
            await ben.fork(annas.id, owner="anna")
        await annas.grant("ben", "read")
        before = await all_of(ben, "anna")
        mine = (await ben.fork(annas.id, owner="anna")).conversation
        assert mine.log.user_id == "ben"
        assert await ben.list_conversations() == [mine.id]
        assert mine.workflow_id == f"conv-ben:{mine.id}"
        await mine.note(state={"user:home": "Ben's"})
        await mine.send("Go on.")
        assert (await mine.result()).text == "Two."
        assert (await texts_of(mine))[:2] == await texts_of(annas)
        assert await mine.values() == {"color": "blue", "user:home": "Ben's"}
        file = harness.resources.own_folder(mine.log) / "plan.txt"
        assert file.read_text() == "Anna's plan\n"
        assert file.parent != harness.resources.own_folder(annas.log)
        assert file.parent.parent.name == "ben"
        now = await all_of(ben, "anna")
        changed = {key for key in before | now if before.get(key) != now.get(key)}
        # A worker writes down what changed in Anna's list now and then, whoever is at work.
        names = {key.rpartition("/")[2] for key in changed if "/index/" not in key}
        assert names - SAVED_AT_REST == {f"{mine.id}.json"}, "the fork's mark"
        assert await annas.values() == {"color": "blue", "user:home": "Anna's"}


@pytest.mark.long
async def test_a_fork_outlives_the_grant_and_holds_its_slots(harness: ConversationHarness) -> None:
    anna, ben = client_of(harness, "anna"), client_of(harness, "ben")
    async with harness.worker():
        annas = await start_annas(harness)
        await annas.grant("ben", "read")
        mine = (await ben.fork(annas.id, owner="anna")).conversation
        await annas.revoke("ben")
        with pytest.raises(NotFound):
            await ben.fork(annas.id, owner="anna")
        await mine.send("Go on.")
        assert (await mine.result()).text == "Two."
        assert [finding async for finding in verify(mine.log)] == []
        assert await forks_of(annas.log) == [f"ben/{mine.id}"]
        for with_forks in (False, True):
            with pytest.raises(Conflict, match=f"ben/{mine.id}"):
                await list_purge_targets(anna, annas.id, with_forks)
        assert await list_purge_targets(ben, mine.id) == [mine.id]
        await purge(ben, [mine.id])
        assert await list_purge_targets(anna, annas.id) == [annas.id]


@pytest.mark.long
async def test_a_shared_fork_shows_the_slots_that_it_shares(harness: ConversationHarness) -> None:
    """Carl reads Ben's fork of Anna's conversation, and nothing else of Anna's."""
    harness = await on_machine(harness, "here")
    ben, carl = client_of(harness, "ben"), client_of(harness, "carl")
    async with harness.worker():
        annas = await start_annas(harness)
        await annas.grant("ben", "read")
        mine = (await ben.fork(annas.id, owner="anna")).conversation
        await mine.grant("carl", "read")
        theirs = carl.conversation(mine.id, "ben")
        assert await texts_of(theirs) == await texts_of(annas)
        assert [file.path for file in (await theirs.changes()).files] == ["plan.txt"]
        with pytest.raises(Forbidden):
            await theirs.send("Go on.")
        with pytest.raises(NotFound):
            await carl.conversation(annas.id, "anna").state()
        other = await start_annas(harness)
        assert await theirs.log.store.read(other.log.prefix + "base_state.json") is None
        carls = (await carl.fork(mine.id, owner="ben")).conversation
        await mine.revoke("carl")
        await carls.send("Go on.")
        assert (await carls.result()).text == "Two."
        assert carls.log.user_id == "carl"


async def test_a_fork_is_cut_and_has_the_model_that_is_asked_for(
    harness: ConversationHarness,
) -> None:
    ben = client_of(harness, "ben")
    async with harness.worker():
        annas = await start_annas(harness)
        await annas.grant("ben", "write")
        model = harness.spec(text_answer("Another.")).model.name
        forked = await ben.fork(annas.id, 2, model, "anna")
        assert forked.at == 2
        assert await forked.conversation.log.first_own_seq() == 3
        assert forked.state.spec is not None
        assert forked.state.spec.model.name == model
