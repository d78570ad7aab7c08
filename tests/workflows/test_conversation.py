"""A conversation from its first message to its end, on a real server."""

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from agent.start import Start
from agent.state import State
from client.conversation import Conversation
from client.errors import Conflict, Invalid, NotFound
from client.ids import new_conversation_id
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from storage.state import state_of
from tests.house import House, calls, kinds, says
from tests.workflows.watching import entries, workspace

ONE_STEP = (calls(("add", {"a": 2, "b": 3})), says("five"))

TALK = [
    "ConversationStateUpdateEvent",  # opened
    "ConversationStateUpdateEvent",  # spec
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "MessageEvent",
]


async def until(talk: Conversation, status: str, next_seq: int = 0) -> None:
    async with asyncio.timeout(30):
        while True:
            now = await talk.status()
            if now.status == status and now.next_seq >= next_seq:
                return
            await asyncio.sleep(0.05)


async def test_a_turn_is_logged_event_by_event_and_ends_when_the_agent_answers(
    house: House,
) -> None:
    async with house.worker():
        talk = await house.client.start("2 + 3?", house.spec(*ONE_STEP))
        state = await talk.finished()

    assert state.status == "finished"
    log = await entries(talk)
    assert kinds(log) == TALK
    assert [entry.seq for entry in log] == list(range(len(TALK)))
    observed = log[5].event
    assert isinstance(observed, ObservationEvent)
    assert observed.action_id == log[4].event.id


async def test_the_workflow_and_the_log_tell_the_same_state(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("2 + 3?", house.spec(*ONE_STEP, idle_timeout=0.1))
        await talk.finished()
        await talk.handle.result()

    kept = await talk.log.load_state()
    assert kept is not None
    told = State.model_validate_json(kept)
    await talk.log.save_state(State().model_dump_json().encode())
    assert told == await state_of(talk.log)


async def test_a_second_message_starts_a_second_turn(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("hello"), says("bye")))
        await talk.finished()
        await talk.send("bye", message_id="second")
        state = await talk.finished("second")

    assert (state.turn, state.answers) == (2, 2)


async def test_finish_ends_the_turn(house: House) -> None:
    spec = house.spec(calls(("add", {"a": 1, "b": 1}), ("finish", {"message": "two"})))
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()

    assert state.status == "finished"
    assert kinds(await entries(talk))[-2:] == ["ObservationEvent", "ObservationEvent"]


async def test_a_call_that_cannot_be_made_is_told_to_the_model(house: House) -> None:
    bad = calls(("add", {"a": "x", "b": 1}), ("no_such", {}), ("add", {"a": 1, "b": 1}))
    async with house.worker():
        talk = await house.client.start("go", house.spec(bad, says("sorry")))
        state = await talk.finished()

    log = [entry.event for entry in await entries(talk)]
    errors = [event for event in log if isinstance(event, AgentErrorEvent)]
    assert [error.classification for error in errors] == ["bad_arguments", "unknown_tool"]
    assert len([event for event in log if isinstance(event, ObservationEvent)]) == 1
    assert state.status == "finished"


async def test_a_tool_that_raises_is_told_to_the_model(house: House) -> None:
    spec = house.spec(calls(("fail", {"why": "no power"})), says("sorry"))
    async with house.worker():
        talk = await house.client.start("go", spec)
        await talk.finished()

    [error] = [e.event for e in await entries(talk) if isinstance(e.event, AgentErrorEvent)]
    assert "no power" in error.error
    assert error.classification == "tool_raised"


async def test_the_iterations_of_a_turn_are_limited(house: House) -> None:
    step = calls(("add", {"a": 1, "b": 1}))
    spec = house.spec(*[step] * 9, says("done"), limits={"max_iterations": 3})
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
        assert state.status == "error"
        assert state.iterations == 3
        assert state.reason is not None
        assert "max_iterations" in state.reason
        await talk.send("go on", message_id="more")
        state = await talk.finished("more")
        assert state.answers == 6


async def test_the_budget_of_a_conversation_is_limited(house: House) -> None:
    step = calls(("add", {"a": 1, "b": 1}), usage={"cost": 0.6})
    spec = house.spec(*[step] * 9, limits={"max_budget": 1.0})
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()

    assert state.answers == 2
    assert state.reason is not None
    assert "max_budget" in state.reason


async def test_a_model_that_refuses_ends_the_turn_with_a_sentence(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("go", house.spec(calls(("add", {"a": 1, "b": 1}))))
        state = await talk.finished()

    last = (await entries(talk))[-1].event
    assert isinstance(last, ConversationErrorEvent)
    assert last.code == "script_exhausted"
    assert state.status == "error"


async def test_a_tool_that_nobody_has_ends_the_turn_with_a_sentence(house: House) -> None:
    spec = house.spec(says("hi"), tools=("no_such_tool",))
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()

    assert state.status == "error"
    assert state.reason is not None
    assert "no_such_tool" in state.reason
    assert "go" in [
        part.text
        for entry in await entries(talk)
        if isinstance(entry.event, MessageEvent)
        for part in entry.event.llm_message.content
        if part.type == "text"
    ]


async def test_a_pause_takes_effect_between_steps_and_resume_goes_on(house: House) -> None:
    spec = house.spec(calls(("meet", {"name": "tool", "other": "go"})), says("done"))
    async with house.worker():
        talk = await house.client.start("go", spec)
        await until(talk, "running", next_seq=5)
        await talk.pause()
        (workspace(house, talk) / "go").touch()
        await until(talk, "paused")
        paused = await entries(talk)
        await talk.send("still there?", message_id="while-paused")
        async with asyncio.timeout(30):
            while "while-paused" not in (await state_of(talk.log)).seen:
                await asyncio.sleep(0.05)
        assert (await talk.status()).status == "paused"
        await talk.resume()
        await until(talk, "finished")
    assert kinds(paused)[-1] == "PauseEvent"
    assert "MessageEvent" in kinds(paused)


async def test_a_closed_conversation_takes_no_more_messages(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("hello")))
        await talk.finished()
        await talk.close()
        await talk.handle.result()
        before = await entries(talk)
        with pytest.raises(Conflict, match="closed"):
            await talk.send("again")
        with pytest.raises(Conflict, match="closed"):
            await talk.submit("again")
    assert await entries(talk) == before
    assert (await talk.status()).status == "closed"


async def test_submit_says_where_the_message_stands_and_a_repeat_gets_the_same_answer(
    house: House,
) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        first = await talk.submit("again", message_id="m")
        await talk.finished("m")
        second = await talk.submit("again", message_id="m")
        await talk.send("again", message_id="m")
        state = await talk.finished("m")

    assert first == second
    recorded = (await entries(talk))[first.seq].event
    assert recorded.id == first.event_id
    assert len([k for k in kinds(await entries(talk)) if k == "MessageEvent"]) == 4
    assert state.turn == 2


async def test_a_message_opens_a_conversation_whose_workflow_has_ended(house: House) -> None:
    async with house.worker():
        spec = house.spec(says("one"), says("two"), idle_timeout=0.1)
        talk = await house.client.start("hi", spec)
        await talk.handle.result()
        recorded = await talk.submit("again", message_id="m")
        state = await talk.finished("m")

    log = await entries(talk)
    opened = log[recorded.seq - 1].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    assert opened.key == "opened"
    assert state.answers == 2


async def test_a_repeat_is_no_new_message_for_a_conversation_that_it_opens_again(
    house: House,
) -> None:
    async with house.worker():
        spec = house.spec(says("one"), says("two"), idle_timeout=0.1)
        talk = await house.client.start("hi", spec, message_id="first")
        await talk.handle.result()
        await talk.send("hi", message_id="first")
        await talk.handle.result()
        state = await state_of(talk.log)

    assert kinds(await entries(talk)).count("MessageEvent") == 2
    assert (state.turn, state.status) == (1, "finished")


async def test_bad_messages_are_refused_with_a_sentence(house: House) -> None:
    talk = house.client.conversation(new_conversation_id())
    with pytest.raises(Invalid, match="empty"):
        await house.client.start("  ", house.spec(says("hi")))
    with pytest.raises(Invalid, match=r"3,000,\d{3} bytes.*98,304"):
        await house.client.start("x" * 3_000_000, house.spec(says("hi")))
    with pytest.raises(NotFound, match=talk.id):
        await talk.send("hello?")
    with pytest.raises(Invalid, match="UUID"):
        house.client.conversation("../../etc")


@pytest.mark.parametrize("nonsense", [17, {"txt": "hi"}, "", "x" * 120_000])
async def test_a_signal_that_is_no_message_leaves_a_note_and_harms_nothing(
    house: House, nonsense: Any
) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        await talk.handle.signal("send_message", nonsense)
        await talk.handle.signal("send_message", "a bare text")
        async with asyncio.timeout(30):
            while (await state_of(talk.log)).turn < 2:
                await asyncio.sleep(0.05)
        await talk.finished()

    notes = [
        entry.event.value
        for entry in await entries(talk)
        if isinstance(entry.event, ConversationStateUpdateEvent) and entry.event.key == "refused"
    ]
    assert len(notes) == 1


@pytest.mark.long
async def test_a_long_turn_goes_on_through_continue_as_new_and_loses_no_message(
    house: House,
) -> None:
    steps = [calls(("add", {"a": nth, "b": 1})) for nth in range(200)]
    spec = house.spec(*steps, says("done"), idle_timeout=0.1)
    async with house.worker():
        talk = await house.client.start("go", spec)
        first = (await talk.handle.describe()).run_id
        for nth in range(20):
            await until(talk, "running", next_seq=10 * nth)
            await talk.send(f"message {nth}", message_id=f"m{nth}")
            await talk.send(f"message {nth}", message_id=f"m{nth}")
        state = await talk.finished("m19")
        last = (await talk.handle.describe()).run_id

    assert first != last
    assert state.answers == 201
    said = [e.event for e in await entries(talk) if isinstance(e.event, MessageEvent)]
    ids = [event.message_id for event in said if event.message_id]
    assert ids[1:] == [f"m{nth}" for nth in range(20)]
    calls_made = [e.event.id for e in await entries(talk) if isinstance(e.event, ActionEvent)]
    results = [
        e.event.action_id for e in await entries(talk) if isinstance(e.event, ObservationEvent)
    ]
    assert results == calls_made


async def test_opening_what_does_not_exist_fails_with_a_sentence(house: House) -> None:
    async with house.worker():
        nobody = new_conversation_id()
        with pytest.raises(WorkflowFailureError) as failed:
            await house.client.temporal.execute_workflow(
                "Conversation",
                Start(conversation_id=nobody, user_id="local"),
                id=f"conv-{uuid.uuid4()}",
                task_queue=house.client.task_queue,
            )
    assert f"no conversation {nobody}" in str(failed.value.cause).lower()
