"""Discussions of the library's own client, and of one of a gateway."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.protocol import DiscussionClient, DiscussionControl
from perdure.client.http.client import HttpClient
from perdure.errors import Conflict, Forbidden, Invalid, NotFound, TimedOut
from perdure.storage.shared import Shared
from perdure.temporal.names import discussion_workflow_id
from tests.client.contract.clients import Clients
from tests.workflows.discussion.debate import PASS, ballot, debate, lines, script, wants


def discussions_of(client: Any) -> DiscussionClient:
    return Discussions.from_client(client)


def new_id() -> str:
    return f"talk-{uuid4()}"  # the tests share a Temporal server


async def status_is(handle: DiscussionControl, wanted: str) -> None:
    async with asyncio.timeout(60):
        while (await handle.status()).status != wanted:
            await asyncio.sleep(0.05)


async def test_a_discussion_is_started_followed_and_read(clients: Clients) -> None:
    folder, session_id = clients.harness.folder, new_id()
    table: dict[str, Any] = {
        "topic": "Tea or coffee?",
        "agents": [
            {"id": "ada", "model": script(folder, [wants(2), "Tea."])},
            {"id": "bob", "model": script(folder, [PASS])},
        ],
        "prune": None,
    }
    discussions = discussions_of(clients.anna)
    async with clients.harness.worker():
        handle = await discussions.start(table, session_id)
        events = [event async for event in handle.events()]
        result = await handle.result()
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert "SPEECH ada: Tea." in lines(events)
    assert lines(events)[-1].endswith('"to":"end"}}')
    assert [event async for event in handle.stored_events()] == events
    assert [event async for event in handle.events(after=len(events) - 1)] == events[-1:]
    assert (result.status, result.speeches) == ("finished", {"ada": 1})
    assert await handle.status() == result
    assert (await handle.spec()).prune is None
    assert await handle.open_log("ada").exists()
    assert await discussions.list_ids() == [session_id]
    with pytest.raises(Conflict, match="is over"):
        await discussions.start(table, session_id)
    with pytest.raises(Conflict, match="another spec"):
        await discussions.start({**table, "topic": "Beer?"}, session_id)
    with pytest.raises(Conflict, match="not running"):
        await handle.pause()
    assert isinstance(clients.anna, HttpClient) == (type(discussions) is not Discussions)


@pytest.mark.long
async def test_a_person_speaks_votes_and_attaches_while_it_is_paused(clients: Clients) -> None:
    spec = debate(
        clients.harness.folder,
        {"ada": [{"content": wants(1), "delay": 1}, "Yes.", ballot("yes")]},
        phases=[{"name": "decision", "end": "vote"}],
    )
    async with clients.harness.worker():
        handle = await discussions_of(clients.anna).start(spec, new_id())
        await handle.pause()
        await status_is(handle, "paused")
        said = asyncio.create_task(handle.say("I pay.", contribution_id="one"))
        again = asyncio.create_task(handle.say("I pay.", contribution_id="one"))
        voted = asyncio.create_task(handle.vote("no", "eve", "too dear"))
        with pytest.raises(TimedOut):
            await handle.say("And I come too.", "eve", max_wait=0.3)
        await handle.resume()
        assert await said == await again
        attached = await discussions_of(clients.anna).start(spec, handle.id)
        assert attached.attached
        result = await attached.result()
    events = {event.sequence: event async for event in handle.stored_events()}
    assert (events[await said].speaker, events[await said].text) == ("anna", "I pay.")
    assert events[await voted].text == '{"ballot":"no","reason":"too dear"}'
    assert result.tally is not None
    assert result.tally.counts == {"yes": 1, "no": 1}
    with pytest.raises(Conflict):
        await handle.say("Too late.", "eve")


async def test_what_is_no_discussion_or_contribution_is_refused(clients: Clients) -> None:
    discussions = discussions_of(clients.anna)
    nothing = discussions.get("nothing")
    for call in (nothing.spec, nothing.pause, nothing.status, nothing.result):
        with pytest.raises(NotFound, match="no discussion nothing"):
            await call()
    with pytest.raises(Invalid, match="no id of a discussion"):
        discussions.get("../x")
    for table, says in (
        ({"topic": "What?"}, "no discussion"),
        ({"topic": "What?", "agents": []}, "agents"),
        ({"topic": "What?", "agents": [{"id": "a", "model": "m"}], "fases": []}, "'fases'"),
    ):
        with pytest.raises(Invalid, match=says):
            await discussions.start(table)
    endless = {"content": "one two three", "chunk_delay": 60}
    async with clients.harness.worker():
        handle = await discussions.start(debate(clients.harness.folder, {"ada": [endless]}))
        with pytest.raises(Invalid, match="no name of a person"):
            await handle.say("I am ada.", "ada")
        for empty in (handle.say, handle.vote):
            with pytest.raises(Invalid):
                await empty("")
        await handle.close()
        assert [event.action async for event in handle.events()][-1] == "CLOSED"
        assert (await handle.result()).status == "closed"


@pytest.mark.long
async def test_following_ends_with_a_workflow_that_was_stopped(clients: Clients) -> None:
    spec = debate(clients.harness.folder, {"ada": [PASS]})
    handle = await discussions_of(clients.anna).start(spec, new_id())
    name = discussion_workflow_id("anna", handle.id)
    await clients.harness.client.temporal.get_workflow_handle(name).terminate("by hand")
    async with asyncio.timeout(20):
        assert [event async for event in handle.events()] == []
    assert (await handle.result()).status == "failed"
    async with clients.harness.worker():
        again = await discussions_of(clients.anna).start(spec, handle.id)
        assert (await again.result()).status == "finished"


@pytest.mark.long
async def test_a_discussion_is_shared(clients: Clients) -> None:
    spec = debate(clients.harness.folder, {"ada": [{"content": wants(1), "delay": 2}, "Yes."]})
    mine, theirs = discussions_of(clients.anna), discussions_of(clients.ben)
    async with clients.harness.worker():
        handle = await mine.start(spec, new_id())
        shared = theirs.get(handle.id, "anna")
        for call in (shared.status, shared.spec, shared.close):
            with pytest.raises(NotFound, match=f"There is no discussion anna/{handle.id}"):
                await call()
        await handle.grant("ben")
        assert [(it.user_id, it.access) for it in await handle.grants()] == [("ben", "read")]
        assert await theirs.list_shared() == [Shared(owner="anna", id=handle.id, access="read")]
        assert await theirs.list_ids() == []
        with pytest.raises(Forbidden, match="may read the discussion"):
            await shared.say("Hello.")
        with pytest.raises(Forbidden):
            await shared.grant("carl")
        await handle.grant("ben", "write")
        assert await shared.say("Hello.") > 1
        with pytest.raises(Forbidden, match="you speak as ben"):
            await shared.say("Hello.", "anna")
        events = [event async for event in shared.events()]
        assert "SPEECH ben: Hello." in lines(events)
        assert (await shared.result()).status == "finished"
        assert await shared.open_log("ada").exists()
        await handle.revoke("ben")
        with pytest.raises(NotFound):
            await shared.spec()
        with pytest.raises(NotFound):
            await theirs.get(handle.id).spec()
