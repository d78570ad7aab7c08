"""What is read of conversations: lists, values, images, files and exports."""

from pathlib import Path

import pytest

from perdure.client.file_changes import diff_files, list_file_changes
from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.content import ImageContent
from perdure.events.messages import MessageEvent
from perdure.exports.format import ExportMetadata, Part
from perdure.exports.openai_chat import OPENAI
from perdure.storage.log.exporting import export
from perdure.storage.log.state import read_agent, read_answer
from tests.client.contract.clients import Clients
from tests.harness import text_answer, tool_call_answer

PNG = b"\x89PNG\r\n\x1a\n"
GIF = b"GIF89a" + bytes(300_000)


async def image_keys(conversation: ConversationHandle) -> list[str]:
    log = conversation.log
    events = [entry.event for entry in await log.read(0, await log.end())]
    contents = [event.llm_message.content for event in events if isinstance(event, MessageEvent)]
    parts = [part for content in contents for part in content if isinstance(part, ImageContent)]
    return [url for part in parts for url in part.image_urls]


async def test_images_are_sent_as_files_bytes_and_addresses(
    clients: Clients, tmp_path: Path
) -> None:
    path = tmp_path / "moving.png"
    path.write_bytes(GIF)
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("I see."), text_answer("Again."))
        talk = await clients.anna.start("Look:", spec, images=[PNG, path, "https://x.org/a.png"])
        await talk.wait_for_turn()
        await talk.send("And again:", images=["data:image/png;base64,iVBORw0KGgo="])
        await talk.result()
    first, second, address, third = await image_keys(talk)
    assert (await talk.log.read_blob(first), await talk.log.read_blob(second)) == (PNG, GIF)
    assert (third, address) == (first, "https://x.org/a.png")
    assert await talk.log.read_blob(f"blobs/{'0' * 64}") is None
    parts: list[Part] = []
    lost = await export(talk.log, OPENAI, ExportMetadata(talk.id), parts.append)
    text = b"".join(part.body for part in parts).decode()
    assert (text.count("data:image/png;base64,iVBORw0KGgo="), lost) == (2, [])


async def test_a_fork_goes_on_from_an_earlier_point(clients: Clients) -> None:
    spec = clients.harness.spec(text_answer("One."), text_answer("Two."), text_answer("Three."))
    async with clients.harness.worker():
        talk = await clients.anna.start("First.", spec)
        await talk.result()
        end = (await talk.state()).next_seq
        await talk.send("Second.")
        assert (await talk.result()).text == "Two."
        forked = await clients.anna.fork(talk.id, end - 1)
        assert (forked.at, forked.state.status) == (end - 1, "finished")
        child = forked.conversation
        assert await child.log.first_own_seq() == end
        await child.send("Another second.")
        assert (await child.result()).text == "Two."
        assert [entry.body for entry in await child.log.read(0, end)] == [
            entry.body for entry in await talk.log.read(0, end)
        ]
    with pytest.raises(Invalid, match=r"^There is no seq 999"):
        await clients.anna.fork(talk.id, 999)
    with pytest.raises(NotFound, match=r"^There is no conversation"):
        await clients.anna.fork(new_conversation_id())


async def test_the_events_of_a_log_are_had_by_index_and_id(clients: Clients) -> None:
    spec = clients.harness.spec(text_answer("One."), text_answer("Two."))
    async with clients.harness.worker():
        talk = await clients.anna.start("First.", spec)
        await talk.result()
        events = [entry.event for entry in await talk.log.read(0, 100)]
        assert [event async for event in talk.event_log] == events
        assert await talk.event_log.length() == len(events)
        assert await talk.event_log.read(-3, -1) == events[-3:-1]
        await talk.send("Second.")
        await talk.result()
        assert await talk.event_log.length() == len(events) + 2
        child = (await clients.anna.fork(talk.id, len(events) - 1)).conversation
        assert await child.event_log.read(0, len(events)) == events
        found = [await child.event_log.get_index(event.id) for event in events]
        assert found == list(range(len(events)))
        newest = await child.event_log.get(-1)
        assert newest.id not in {event.id for event in events}
        assert await child.event_log.find(newest.id) == newest


async def test_a_question_beside_the_conversation_is_answered(clients: Clients) -> None:
    async with clients.harness.worker():
        talk = await clients.anna.start("First.", clients.harness.spec(text_answer("One.")))
        await talk.result()
        end = await talk.log.end()
        answer = await clients.anna.ask(talk.id, "What is it about?")
        assert answer.text.startswith("ANSWER")
        assert await talk.log.end() == end
        with pytest.raises(Invalid, match="is empty"):
            await clients.anna.ask(talk.id, " ")


async def test_conversations_are_listed_the_newest_first(clients: Clients) -> None:
    async with clients.harness.worker():
        started = []
        for number in range(3):
            spec = clients.harness.spec(text_answer("One."))
            started.append(await clients.anna.start(f"Number {number}.", spec))
        for talk in started:
            await talk.result()
        await started[0].send("Again.")
        assert await clients.anna.list_conversations() == [talk.id for talk in reversed(started)]
        assert await clients.anna.list_conversations(2) == [started[2].id, started[1].id]
        assert await clients.ben.list_conversations() == []


async def test_the_state_and_the_agent_in_force_are_those_of_the_log(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("One."))
        talk = await clients.anna.start("First.", spec, title="Numbers")
        await talk.result()
        state = await talk.state()
        agent = await read_agent(talk.log, state)
        assert agent is not None
        assert (agent.model, agent.tools, state.title) == (spec.model, spec.tools, "Numbers")
        assert await talk.state() == state
        assert await talk.require_open() == state
        assert (await talk.status()).title == "Numbers"
        assert await talk.diagnose() is None
        await talk.close()
        async for entry in talk.events():
            if b'"closed"' in entry.body:
                break
        with pytest.raises(Conflict, match="is closed"):
            await talk.require_open()
    assert not await clients.anna.conversation(new_conversation_id()).exists()
    with pytest.raises(NotFound):
        await clients.anna.conversation(new_conversation_id()).state()


async def test_a_conversation_may_begin_without_a_message(clients: Clients) -> None:
    async with clients.harness.worker():
        talk = await clients.anna.start(None, clients.harness.spec(text_answer("One.")))
        await talk.send("First.")
        assert (await talk.result()).text == "One."


async def test_the_same_ids_again_start_and_send_nothing_twice(clients: Clients) -> None:
    name = new_conversation_id()
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("One."), text_answer("Two."))
        for _ in range(3):
            talk = await clients.anna.start("First.", spec, name, "one")
        assert (await talk.result()).text == "One."
        for _ in range(3):
            recorded = await talk.submit("Second.", "two")
        state = await talk.wait_for_turn("two")
        assert await read_answer(talk.log, state) == "Two."
        assert recorded.seq == (await talk.state()).message_seqs["two"]
        sent = [e for e in await talk.log.read(0, 100) if getattr(e.event, "source", "") == "user"]
        assert len([e for e in sent if e.event.kind == "MessageEvent"]) == 2


async def test_the_files_that_a_turn_changed_are_listed_and_compared(
    clients: Clients, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one\n")
    write = tool_call_answer(("terminal", {"command": "echo two >> old.txt; echo new > new.txt"}))
    async with clients.harness.worker():
        spec = clients.harness.spec(
            write, text_answer("Done."), tools=("terminal",), workspace=str(folder)
        )
        talk = await clients.anna.start("Write.", spec)
        await talk.result()
        changes = [(it.path, it.kind, it.added) for it in await list_file_changes(talk)]
        assert changes == [("new.txt", "added", 1), ("old.txt", "changed", 1)]
        assert "+two" in await diff_files(talk)
