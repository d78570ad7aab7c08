"""Forks of real conversations: they go on from where they were cut, and so do their parents."""

import pytest

from perdure.client.conversation import Conversation
from perdure.client.fork import fork
from perdure.client.fork_handle import Fork
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent
from perdure.operations.purge import list_purge_targets, purge
from perdure.storage.conversations import conversation_exists
from perdure.storage.log.state import read_state
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer

ADD = tool_call_answer(("add", {"a": 2, "b": 3}))


async def entries(talk: Conversation) -> list[Entry]:
    return await talk.log.read(0, 1000)


async def texts_of(talk: Conversation) -> list[str]:
    events = [entry.event for entry in await entries(talk)]
    return [
        join_text(event.llm_message.content) for event in events if isinstance(event, MessageEvent)
    ]


async def seq_of(talk: Conversation, kind: str) -> int:
    return event_kinds(await entries(talk)).index(kind)


async def test_a_fork_goes_on_from_its_point_and_the_parent_from_its_own(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(text_answer("one"), text_answer("two"), text_answer("three"))
    async with harness.worker():
        talk = await harness.client.start("first", spec)
        at = (await talk.wait_for_turn()).next_seq - 1
        await talk.send("second", "m2")
        await talk.wait_for_turn("m2")
        forked = await fork(harness.client, talk.id, at)
        child = forked.conversation
        await child.send("another second", "m2b")
        state = await child.wait_for_turn("m2b")
        await talk.send("third", "m3")
        await talk.wait_for_turn("m3")

    assert (forked.at, forked.state.status) == (at, "finished")
    assert await texts_of(talk) == ["first", "one", "second", "two", "third", "three"]
    assert await texts_of(child) == ["first", "one", "another second", "two"]
    assert (state.turn, state.response_count) == (2, 2)
    parents, own = await entries(talk), await entries(child)
    assert own[: at + 1] == parents[: at + 1]
    assert [getattr(entry.event, "key", None) for entry in own[at + 1 : at + 3]] == [
        "forked",
        "opened",
    ]
    await child.log.save_state(b"{}")
    assert state == await read_state(child.log), "also by the log alone"


async def test_another_model_answers_in_a_fork_and_its_fork(harness: ConversationHarness) -> None:
    other = harness.spec(text_answer("-"), text_answer("I am another.")).model.name
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        first = await fork(harness.client, talk.id, model=other)
        second = await fork(harness.client, first.conversation.id)
        await second.conversation.send("who?", "m")
        state = await second.conversation.wait_for_turn("m")

    assert state.spec is not None
    assert state.spec.model.name == other
    assert state.spec.tools == harness.spec(text_answer("-")).tools
    assert (await texts_of(second.conversation))[-1] == "I am another."
    assert [holder.first for holder in await second.conversation.log.lineage()] == [
        second.at + 1,
        first.at + 1,
        0,
    ]


@pytest.mark.parametrize("going_on", ["message", "resume"])
async def test_a_call_without_a_result_at_the_cut_is_not_made_in_silence(
    harness: ConversationHarness, going_on: str
) -> None:
    batch = tool_call_answer(("charge", {"amount": 7, "seconds": 0}), ("add", {"a": 1, "b": 1}))
    async with harness.worker():
        talk = await harness.client.start("pay", harness.spec(batch, text_answer("paid")))
        await talk.wait_for_turn()
        at = await seq_of(talk, "ActionEvent") + 1
        forked = await fork(harness.client, talk.id, at)
        child = forked.conversation
        if going_on == "message":
            await child.send("well?", "m")
        else:
            await child.resume()
        await child.wait_for_turn("m" if going_on == "message" else None, after=at + 1)

    assert forked.state.status == "running"
    assert [item.tool_name for item in forked.state.pending] == ["charge", "add"]
    assert not (harness.resources.workspaces / child.id / "charged").exists()
    assert (harness.resources.workspaces / talk.id / "charged").read_text() == "7\n"
    own = (await entries(child))[at + 1 :]
    [lost] = [entry.event for entry in own if isinstance(entry.event, AgentErrorEvent)]
    assert (lost.tool_name, lost.classification) == ("charge", "outcome_unknown")
    assert event_kinds(own).count("ObservationEvent") == 1, "adding once more does no harm"
    assert (await texts_of(child))[-1] == "paid"


async def test_actions_that_wait_for_a_person_wait_in_the_fork_as_well(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 7, "seconds": 0})),
        text_answer("paid"),
        confirmation={"policy": "always"},
    )
    async with harness.worker():
        talk = await harness.client.start("pay", spec)
        state = await talk.wait_for_turn()
        assert state.status == "waiting_for_confirmation"
        forked = await fork(harness.client, talk.id)
        child = forked.conversation
        [pending] = forked.state.pending
        await child.respond(accept=True, calls=[pending.tool_call_id])
        done = await child.wait_for_turn(after=forked.at + 1)

    assert done.status == "finished"
    assert (harness.resources.workspaces / child.id / "charged").read_text() == "7\n"
    assert (await read_state(talk.log)).status == "waiting_for_confirmation"


@pytest.mark.long
async def test_every_prefix_of_a_conversation_can_go_on(harness: ConversationHarness) -> None:
    """But for the first event: there is no agent before the second."""
    async with harness.worker():
        spec = harness.spec(
            ADD, text_answer("five"), text_answer("six"), text_answer("seven"), idle_timeout=0.1
        )
        talk = await harness.client.start("2 + 3?", spec)
        await talk.handle.result()
        forks: list[Fork[Conversation]] = []
        for at in range(1, await talk.log.end()):
            forks.append(await fork(harness.client, talk.id, at))
            await forks[-1].conversation.send("and on", "m")
        for forked in forks:
            state = await forked.conversation.wait_for_turn("m")
            assert (state.status, forked.at) == ("finished", forked.at)
            log = event_kinds(await entries(forked.conversation))
            assert log.count("ActionEvent") == log.count("ObservationEvent")


async def test_an_impossible_fork_fails_with_a_sentence(harness: ConversationHarness) -> None:
    nobody = new_conversation_id()
    with pytest.raises(NotFound, match=nobody):
        await fork(harness.client, nobody)
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        await talk.close()
        await talk.handle.result()
        end = await talk.log.end()
        with pytest.raises(Invalid, match=f"no seq {end}: the log has seqs 0 to {end - 1}"):
            await fork(harness.client, talk.id, end)
        with pytest.raises(Invalid, match="no agent yet"):
            await fork(harness.client, talk.id, 0)
        with pytest.raises(Invalid, match=f"seq {end - 1} the conversation is closed"):
            await fork(harness.client, talk.id, end - 1)
        forked = await fork(harness.client, talk.id)
        await forked.conversation.send("again", "m")
        await forked.conversation.wait_for_turn("m")

    assert forked.at == end - 2, "before it was closed"
    assert (await texts_of(forked.conversation))[-1] == "two"


async def test_a_purge_ends_what_rests_and_waits_for_the_forks(
    harness: ConversationHarness,
) -> None:
    client = harness.client
    async with harness.worker():
        talk = await client.start("hi", harness.spec(text_answer("one"), text_answer("two")))
        await talk.wait_for_turn()
        child = (await fork(client, talk.id)).conversation
        with pytest.raises(Conflict, match=child.id) as forked:
            await list_purge_targets(client, talk.id)
        assert "--with-forks" in forked.value.hint
        names = await list_purge_targets(client, talk.id, with_forks=True)
        assert names == [child.id, talk.id]
        assert await talk.workflow.is_running(), "for a while, at rest"
        purged = await purge(client, names)
        assert not await talk.workflow.is_running()
        assert set(purged.objects) == {child.id, talk.id}
        assert (purged.histories, purged.undeleted_reason) == (1, None)
        with pytest.raises(NotFound):
            await list_purge_targets(client, talk.id)

    assert await client.store.list("") == []
    assert not await conversation_exists(client.store, client.user_id, talk.id)
    assert not any(isinstance(entry.event, ActionEvent) for entry in await entries(talk))
