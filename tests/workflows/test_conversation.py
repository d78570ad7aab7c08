"""A conversation from its first message to its end, on a real server."""

import asyncio
import uuid
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.storage.log.cached_state import parse_cached_state
from perdure.storage.log.state import read_state
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.workflows.watching import entries, workspace

ONE_STEP = (tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("five"))

TALK = [
    "ConversationStateUpdateEvent",  # opened
    "ConversationStateUpdateEvent",  # spec
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "MessageEvent",
]


async def wait_for_status(talk: Conversation, status: str, next_seq: int = 0) -> None:
    async with asyncio.timeout(30):
        while True:
            now = await talk.status()
            if now.status == status and now.next_seq >= next_seq:
                return
            await asyncio.sleep(0.05)


async def test_a_turn_is_logged_event_by_event_and_ends_when_the_agent_answers(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("2 + 3?", harness.spec(*ONE_STEP))
        state = await talk.wait_for_turn()

    assert state.status == "finished"
    log = await entries(talk)
    assert event_kinds(log) == TALK
    assert [entry.seq for entry in log] == list(range(len(TALK)))
    observed = log[5].event
    assert isinstance(observed, ObservationEvent)
    assert observed.action_id == log[4].event.id


async def test_the_workflow_and_the_log_tell_the_same_state(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start("2 + 3?", harness.spec(*ONE_STEP, idle_timeout=0.1))
        await talk.wait_for_turn()
        await talk.handle.result()

    cached = parse_cached_state(await talk.log.load_state())
    assert cached.is_own
    await talk.log.save_state(State().model_dump_json().encode())
    assert cached.state == await read_state(talk.log)


async def test_a_second_message_starts_a_second_turn(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("hello"), text_answer("bye"))
        )
        await talk.wait_for_turn()
        await talk.send("bye", message_id="second")
        state = await talk.wait_for_turn("second")

    assert (state.turn, state.response_count) == (2, 2)


async def test_finish_ends_the_turn(harness: ConversationHarness) -> None:
    spec = harness.spec(tool_call_answer(("add", {"a": 1, "b": 1}), ("finish", {"message": "two"})))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()

    assert state.status == "finished"
    assert event_kinds(await entries(talk))[-2:] == ["ObservationEvent", "ObservationEvent"]


async def test_an_invalid_call_is_reported_to_the_model(harness: ConversationHarness) -> None:
    bad = tool_call_answer(("add", {"a": "x", "b": 1}), ("no_such", {}), ("add", {"a": 1, "b": 1}))
    async with harness.worker():
        talk = await harness.client.start("go", harness.spec(bad, text_answer("sorry")))
        state = await talk.wait_for_turn()

    log = [entry.event for entry in await entries(talk)]
    errors = [event for event in log if isinstance(event, AgentErrorEvent)]
    assert [error.classification for error in errors] == ["bad_arguments", "unknown_tool"]
    assert len([event for event in log if isinstance(event, ObservationEvent)]) == 1
    assert state.status == "finished"


async def test_the_error_of_a_tool_is_reported_to_the_model(harness: ConversationHarness) -> None:
    spec = harness.spec(tool_call_answer(("fail", {"why": "no power"})), text_answer("sorry"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()

    [error] = [e.event for e in await entries(talk) if isinstance(e.event, AgentErrorEvent)]
    assert "no power" in error.error
    assert error.classification == "tool_raised"


async def test_the_iterations_of_a_turn_are_limited(harness: ConversationHarness) -> None:
    step = tool_call_answer(("add", {"a": 1, "b": 1}))
    spec = harness.spec(*[step] * 9, text_answer("done"), limits={"max_iterations": 3})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
        assert state.status == "error"
        assert state.iterations == 3
        assert state.reason is not None
        assert "max_iterations" in state.reason
        await talk.send("go on", message_id="more")
        state = await talk.wait_for_turn("more")
        assert state.response_count == 6


async def test_the_budget_of_a_conversation_is_limited(harness: ConversationHarness) -> None:
    step = tool_call_answer(("add", {"a": 1, "b": 1}), usage={"cost": 0.6})
    spec = harness.spec(*[step] * 9, limits={"max_budget": 1.0})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()

    assert state.response_count == 2
    assert state.reason is not None
    assert "max_budget" in state.reason


async def test_a_model_that_refuses_ends_the_turn_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "go", harness.spec(tool_call_answer(("add", {"a": 1, "b": 1})))
        )
        state = await talk.wait_for_turn()

    last = (await entries(talk))[-1].event
    assert isinstance(last, ConversationErrorEvent)
    assert last.code == "script_exhausted"
    assert state.status == "error"


async def test_a_tool_that_nobody_has_ends_the_turn_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(text_answer("hi"), tools=("no_such_tool",))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()

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


@pytest.mark.long
async def test_a_pause_takes_effect_between_steps_and_resume_goes_on(
    harness: ConversationHarness, calls: dict[str, Any]
) -> None:
    meeting = tool_call_answer(("meet", {"name": "tool", "other": "go"}))
    spec = harness.spec(meeting, text_answer("done"), **calls)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "running", next_seq=5)
        await talk.pause()
        (workspace(harness, talk) / "go").touch()
        await wait_for_status(talk, "paused")
        paused = await entries(talk)
        await talk.send("still there?", message_id="while-paused")
        async with asyncio.timeout(30):
            while "while-paused" not in (await read_state(talk.log)).message_seqs:
                await asyncio.sleep(0.05)
        assert (await talk.status()).status == "paused"
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert event_kinds(paused)[-1] == "PauseEvent"
    assert "MessageEvent" in event_kinds(paused)


@pytest.mark.long
async def test_a_closed_conversation_takes_no_more_messages(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start("hi", harness.spec(text_answer("hello")))
        await talk.wait_for_turn()
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
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        first = await talk.submit("again", message_id="m")
        await talk.wait_for_turn("m")
        second = await talk.submit("again", message_id="m")
        await talk.send("again", message_id="m")
        state = await talk.wait_for_turn("m")

    assert first == second
    recorded = (await entries(talk))[first.seq].event
    assert recorded.id == first.event_id
    assert len([k for k in event_kinds(await entries(talk)) if k == "MessageEvent"]) == 4
    assert state.turn == 2


async def test_a_message_opens_a_conversation_whose_workflow_has_ended(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        spec = harness.spec(text_answer("one"), text_answer("two"), idle_timeout=0.1)
        talk = await harness.client.start("hi", spec)
        await talk.handle.result()
        recorded = await talk.submit("again", message_id="m")
        state = await talk.wait_for_turn("m")

    log = await entries(talk)
    opened = log[recorded.seq - 1].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    assert opened.key == "opened"
    assert state.response_count == 2


async def test_a_repeat_is_no_new_message_for_a_conversation_that_it_opens_again(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        spec = harness.spec(text_answer("one"), text_answer("two"), idle_timeout=0.1)
        talk = await harness.client.start("hi", spec, message_id="first")
        await talk.handle.result()
        await talk.send("hi", message_id="first")
        await talk.handle.result()
        state = await read_state(talk.log)

    assert event_kinds(await entries(talk)).count("MessageEvent") == 2
    assert (state.turn, state.status) == (1, "finished")


async def test_bad_messages_are_refused_with_a_sentence(harness: ConversationHarness) -> None:
    talk = harness.client.conversation(new_conversation_id())
    with pytest.raises(Invalid, match="empty"):
        await harness.client.start("  ", harness.spec(text_answer("hi")))
    with pytest.raises(Invalid, match=r"3,000,\d{3} bytes.*98,304"):
        await harness.client.start("x" * 3_000_000, harness.spec(text_answer("hi")))
    with pytest.raises(NotFound, match=talk.id):
        await talk.send("hello?")
    with pytest.raises(Invalid, match="UUID"):
        harness.client.conversation("../../etc")


@pytest.mark.parametrize("nonsense", [17, {"txt": "hi"}, "", "x" * 120_000])
async def test_a_signal_that_is_no_message_leaves_a_note_and_harms_nothing(
    harness: ConversationHarness, nonsense: Any
) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        await talk.handle.signal("send_message", nonsense)
        await talk.handle.signal("send_message", "a bare text")
        async with asyncio.timeout(30):
            while (await read_state(talk.log)).turn < 2:
                await asyncio.sleep(0.05)
        await talk.wait_for_turn()

    notes = [
        entry.event.value
        for entry in await entries(talk)
        if isinstance(entry.event, ConversationStateUpdateEvent) and entry.event.key == "refused"
    ]
    assert len(notes) == 1


@pytest.mark.long
async def test_a_long_turn_goes_on_through_continue_as_new_and_loses_no_message(
    harness: ConversationHarness,
) -> None:
    steps = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(200)]
    spec = harness.spec(*steps, text_answer("done"), idle_timeout=0.1)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        first = (await talk.handle.describe()).run_id
        for nth in range(20):
            await wait_for_status(talk, "running", next_seq=10 * nth)
            await talk.send(f"message {nth}", message_id=f"m{nth}")
            await talk.send(f"message {nth}", message_id=f"m{nth}")
        state = await talk.wait_for_turn("m19")
        last = (await talk.handle.describe()).run_id

    assert first != last
    assert state.response_count == 201
    messages = [e.event for e in await entries(talk) if isinstance(e.event, MessageEvent)]
    ids = [event.message_id for event in messages if event.message_id]
    assert ids[1:] == [f"m{nth}" for nth in range(20)]
    calls_made = [e.event.id for e in await entries(talk) if isinstance(e.event, ActionEvent)]
    results = [
        e.event.action_id for e in await entries(talk) if isinstance(e.event, ObservationEvent)
    ]
    assert results == calls_made


async def test_opening_a_missing_conversation_fails_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        nobody = new_conversation_id()
        with pytest.raises(WorkflowFailureError) as failed:
            await harness.client.temporal.execute_workflow(
                "Conversation",
                Start(conversation_id=nobody, user_id="local"),
                id=f"conv-{uuid.uuid4()}",
                task_queue=harness.client.task_queue,
            )
    assert f"no conversation {nobody}" in str(failed.value.cause).lower()
