"""Discussions for programs: start, follow, take part, steer, and the errors."""

import asyncio
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.discussion.sync import SyncDiscussions
from perdure.errors import Conflict, Invalid, NotFound, TimedOut
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import PASS, ballot, debate, lines, script, wants


@pytest.fixture
def discussions(harness: ConversationHarness) -> Discussions:
    return Discussions.from_client(harness.client)


async def status_is(handle: DiscussionHandle, wanted: str) -> None:
    async with asyncio.timeout(60):
        while (await handle.status()).status != wanted:
            await asyncio.sleep(0.05)


@pytest.mark.long
async def test_a_discussion_is_started_from_a_table_and_followed_to_its_end(
    harness: ConversationHarness, discussions: Discussions
) -> None:
    table: dict[str, Any] = {
        "topic": "Tea or coffee?",
        "agents": [
            {"id": "ada", "model": script(harness.folder, [wants(2), "Tea."])},
            {"id": "bob", "model": script(harness.folder, [PASS])},
        ],
    }
    async with harness.worker():
        handle = await discussions.start(table, "tea")
        events = [event async for event in handle.events()]
        result = await handle.result()
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert "SPEECH ada: Tea." in lines(events)
    assert lines(events)[-1].endswith('"to":"end"}}')
    assert [event async for event in handle.stored_events()] == events
    assert [event async for event in handle.events(after=len(events) - 1)] == events[-1:]
    assert await discussions.list_ids() == ["tea"]
    assert await handle.status() == result
    own = harness.client.conversation(handle.conversation_id("ada"))
    assert (await own.state()).turn == 2
    with pytest.raises(Conflict, match="is over"):
        await discussions.start(table, "tea")
    elsewhere = copy(harness.client)
    elsewhere.code_folder = "/another/folder"
    with pytest.raises(Conflict, match="is over"):  # and has no other spec
        await Discussions.from_client(elsewhere).start(table, "tea")
    with pytest.raises(Conflict, match="another spec"):
        await discussions.start({**table, "topic": "Beer or wine?"}, "tea")
    with pytest.raises(Conflict, match="not running"):
        await handle.pause()


@pytest.mark.long
async def test_a_person_pauses_speaks_votes_and_closes(
    harness: ConversationHarness, discussions: Discussions
) -> None:
    spec = debate(
        harness.folder,
        {"ada": [{"content": wants(1), "delay": 1}, "Yes.", ballot("yes")]},
        phases=[{"name": "decision", "end": "vote"}],
    )
    async with harness.worker():
        handle = await discussions.start(spec)
        await handle.pause()
        await status_is(handle, "paused")
        said = asyncio.create_task(handle.say("I pay for it.", "eve"))
        voted = asyncio.create_task(handle.vote("no", "eve", "too dear"))
        await asyncio.sleep(0.2)
        await handle.resume()
        places = [await said, await voted]
        again = await discussions.start(spec, handle.id)  # attaches
        result = await again.result()
    events = {event.sequence: event async for event in handle.stored_events()}
    assert [events[place].text for place in places] == [
        "I pay for it.",
        '{"ballot":"no","reason":"too dear"}',
    ]
    assert result.tally is not None
    assert result.tally.counts == {"yes": 1, "no": 1}
    with pytest.raises(Conflict):
        await handle.say("Too late.", "eve")


async def test_closing_ends_it(harness: ConversationHarness, discussions: Discussions) -> None:
    endless = {"content": "one two three", "chunk_delay": 60}
    async with harness.worker():
        handle = await discussions.start(debate(harness.folder, {"ada": [endless]}))
        with pytest.raises(Invalid, match="no name of a person"):
            await handle.say("I am ada.", "ada")
        await handle.close()
        actions = [event.action async for event in handle.events()]
        result = await handle.result()
    assert actions[-1] == "CLOSED"
    assert result.status == "closed"


async def test_what_does_not_exist_or_answer_is_told(
    harness: ConversationHarness, discussions: Discussions
) -> None:
    nothing = discussions.get("nothing")
    for call in (nothing.spec, nothing.pause, nothing.status, nothing.result):
        with pytest.raises(NotFound, match="no discussion nothing"):
            await call()
    with pytest.raises(Invalid, match="no id of a discussion"):
        discussions.get("../x")
    with pytest.raises(Invalid, match="no discussion"):
        await discussions.start({"topic": "What?"})
    waiting = await discussions.start(debate(harness.folder, {"ada": [PASS]}))
    with pytest.raises(TimedOut):
        await waiting.status(max_wait=0.3)
    await waiting.handle.terminate()


@pytest.mark.long
async def test_a_budget_needs_known_prices(discussions: Discussions, tmp_path: Path) -> None:
    spec = debate(tmp_path, {"ada": [PASS]}, limits={"budget": 1.0})
    agent = spec.agents[0].agent
    model = agent.model.model_copy(update={"name": "openai/nobody-knows-it"})
    agents = (
        spec.agents[0].model_copy(update={"agent": agent.model_copy(update={"model": model})}),
    )
    with pytest.raises(Invalid, match="price of openai/nobody-knows-it"):
        await discussions.start(spec.model_copy(update={"agents": agents}))


async def test_a_stopped_workflow_is_a_failure_and_goes_on_when_it_is_started_again(
    harness: ConversationHarness, discussions: Discussions
) -> None:
    spec = debate(harness.folder, {"ada": [wants(1), {"content": "Here.", "delay": 0.5}]})
    handle = await discussions.start(spec)
    await handle.handle.terminate("by hand")
    assert (await handle.result()).status == "failed"
    async with harness.worker():
        result = await (await discussions.start(spec, handle.id)).result()
    assert (result.status, result.speeches) == ("finished", {"ada": 1})


async def test_a_program_without_an_event_loop_waits(
    harness: ConversationHarness, discussions: Discussions
) -> None:
    """The handles of the store are used in another thread's loop, as SyncClient's are."""
    spec = debate(harness.folder, {"ada": [wants(1), "I wait."]})

    def work() -> list[str]:
        with start_blocking_portal() as portal:
            handle = SyncDiscussions(discussions, portal).get("none")
            with pytest.raises(NotFound):
                handle.spec()
            return SyncDiscussions(discussions, portal).list_ids()

    async with harness.worker():
        handle = await discussions.start(spec, "waited")
        await handle.result()
    assert await asyncio.to_thread(work) == ["waited"]
