"""Forks of real conversations: they go on from where they were cut, and so do their parents."""

import pytest

from client.conversation import Conversation
from client.errors import Conflict, Invalid, NotFound
from client.fork import Forked, fork
from client.ids import new_conversation_id
from client.purge import doomed, purge
from events.content import text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent
from storage.conversations import exists
from storage.state import state_of
from tests.house import House, calls, kinds, says

ADD = calls(("add", {"a": 2, "b": 3}))


async def entries(talk: Conversation) -> list[Entry]:
    return await talk.log.read(0, 1000)


async def said(talk: Conversation) -> list[str]:
    events = [entry.event for entry in await entries(talk)]
    return [text_of(one.llm_message.content) for one in events if isinstance(one, MessageEvent)]


async def seq_of(talk: Conversation, kind: str) -> int:
    return kinds(await entries(talk)).index(kind)


async def test_a_fork_goes_on_from_its_point_and_the_parent_from_its_own(house: House) -> None:
    spec = house.spec(says("one"), says("two"), says("three"))
    async with house.worker():
        talk = await house.client.start("first", spec)
        at = (await talk.finished()).next_seq - 1
        await talk.send("second", "m2")
        await talk.finished("m2")
        forked = await fork(house.client, talk.id, at)
        child = forked.conversation
        await child.send("another second", "m2b")
        state = await child.finished("m2b")
        await talk.send("third", "m3")
        await talk.finished("m3")

    assert (forked.at, forked.state.status) == (at, "finished")
    assert await said(talk) == ["first", "one", "second", "two", "third", "three"]
    assert await said(child) == ["first", "one", "another second", "two"]
    assert (state.turn, state.answers) == (2, 2)
    parents, own = await entries(talk), await entries(child)
    assert own[: at + 1] == parents[: at + 1]
    assert [getattr(entry.event, "key", None) for entry in own[at + 1 : at + 3]] == [
        "forked",
        "opened",
    ]
    await child.log.save_state(b"{}")
    assert state == await state_of(child.log), "also by the log alone"


async def test_another_model_answers_in_a_fork_and_its_fork(house: House) -> None:
    other = house.spec(says("-"), says("I am another.")).model.name
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        first = await fork(house.client, talk.id, model=other)
        second = await fork(house.client, first.conversation.id)
        await second.conversation.send("who?", "m")
        state = await second.conversation.finished("m")

    assert state.spec is not None
    assert state.spec.model.name == other
    assert state.spec.tools == house.spec(says("-")).tools
    assert (await said(second.conversation))[-1] == "I am another."
    assert [holder.first for holder in await second.conversation.log.lineage()] == [
        second.at + 1,
        first.at + 1,
        0,
    ]


@pytest.mark.parametrize("going_on", ["message", "resume"])
async def test_a_call_without_a_result_at_the_cut_is_not_made_in_silence(
    house: House, going_on: str
) -> None:
    batch = calls(("charge", {"amount": 7, "seconds": 0}), ("add", {"a": 1, "b": 1}))
    async with house.worker():
        talk = await house.client.start("pay", house.spec(batch, says("paid")))
        await talk.finished()
        at = await seq_of(talk, "ActionEvent") + 1
        forked = await fork(house.client, talk.id, at)
        child = forked.conversation
        if going_on == "message":
            await child.send("well?", "m")
        else:
            await child.resume()
        await child.finished("m" if going_on == "message" else None, after=at + 1)

    assert forked.state.status == "running"
    assert [one.tool_name for one in forked.state.pending] == ["charge", "add"]
    assert not (house.world.workspaces / child.id / "charged").exists()
    assert (house.world.workspaces / talk.id / "charged").read_text() == "7\n"
    own = (await entries(child))[at + 1 :]
    [lost] = [entry.event for entry in own if isinstance(entry.event, AgentErrorEvent)]
    assert (lost.tool_name, lost.classification) == ("charge", "outcome_unknown")
    assert kinds(own).count("ObservationEvent") == 1, "adding once more does no harm"
    assert (await said(child))[-1] == "paid"


async def test_actions_that_wait_for_a_person_wait_in_the_fork_as_well(house: House) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 7, "seconds": 0})),
        says("paid"),
        confirmation={"policy": "always"},
    )
    async with house.worker():
        talk = await house.client.start("pay", spec)
        state = await talk.finished()
        assert state.status == "waiting_for_confirmation"
        forked = await fork(house.client, talk.id)
        child = forked.conversation
        [pending] = forked.state.pending
        await child.respond(accept=True, calls=[pending.tool_call_id])
        done = await child.finished(after=forked.at + 1)

    assert done.status == "finished"
    assert (house.world.workspaces / child.id / "charged").read_text() == "7\n"
    assert (await state_of(talk.log)).status == "waiting_for_confirmation"


@pytest.mark.long
async def test_every_prefix_of_a_conversation_can_go_on(house: House) -> None:
    """But for the first event: there is no agent before the second."""
    async with house.worker():
        spec = house.spec(ADD, says("five"), says("six"), says("seven"), idle_timeout=0.1)
        talk = await house.client.start("2 + 3?", spec)
        await talk.handle.result()
        forks: list[Forked] = []
        for at in range(1, await talk.log.end()):
            forks.append(await fork(house.client, talk.id, at))
            await forks[-1].conversation.send("and on", "m")
        for forked in forks:
            state = await forked.conversation.finished("m")
            assert (state.status, forked.at) == ("finished", forked.at)
            log = kinds(await entries(forked.conversation))
            assert log.count("ActionEvent") == log.count("ObservationEvent")


async def test_what_cannot_be_forked_is_told_with_a_sentence(house: House) -> None:
    nobody = new_conversation_id()
    with pytest.raises(NotFound, match=nobody):
        await fork(house.client, nobody)
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        await talk.close()
        await talk.handle.result()
        end = await talk.log.end()
        with pytest.raises(Invalid, match=f"no seq {end}: the log has seqs 0 to {end - 1}"):
            await fork(house.client, talk.id, end)
        with pytest.raises(Invalid, match="no agent yet"):
            await fork(house.client, talk.id, 0)
        with pytest.raises(Invalid, match=f"seq {end - 1} the conversation is closed"):
            await fork(house.client, talk.id, end - 1)
        forked = await fork(house.client, talk.id)
        await forked.conversation.send("again", "m")
        await forked.conversation.finished("m")

    assert forked.at == end - 2, "before it was closed"
    assert (await said(forked.conversation))[-1] == "two"


async def test_a_purge_waits_for_the_end_and_for_the_forks(house: House) -> None:
    client = house.client
    async with house.worker():
        talk = await client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        child = (await fork(client, talk.id)).conversation
        with pytest.raises(Conflict, match="is running") as running:
            await doomed(client, talk.id, with_forks=True)
        assert f"perdure close {talk.id}" in running.value.hint
        await talk.close()
        await talk.handle.result()
        with pytest.raises(Conflict, match=child.id) as forked:
            await doomed(client, talk.id)
        assert "--with-forks" in forked.value.hint
        names = await doomed(client, talk.id, with_forks=True)
        assert names == [child.id, talk.id]
        purged = await purge(client, names)
        assert set(purged.objects) == {child.id, talk.id}
        assert (purged.histories, purged.kept) == (1, None)
        with pytest.raises(NotFound):
            await doomed(client, talk.id)

    assert await client.store.list("") == []
    assert not await exists(client.store, client.user_id, talk.id)
    assert not any(isinstance(entry.event, ActionEvent) for entry in await entries(talk))
