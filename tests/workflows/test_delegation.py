"""Interrupts, closing and reopening of a conversation reach its delegate."""

import asyncio
from typing import Any

import pytest

from perdure.activities.delegate import child_id
from perdure.client.conversation import Conversation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.operations.reopen import reopen
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.interrupted_conversations import rewrite_script
from tests.workflows.test_adversity import SlowStore, hesitant
from tests.workflows.watching import (
    entries,
    events,
    notes,
    observations,
    wait_for_status,
    wait_until,
)

__all__ = ["hesitant"]


async def start_charging_delegate(
    harness: ConversationHarness,
) -> tuple[Conversation, Conversation]:
    """A conversation that waits for the one it delegated to, and that one, which charges."""
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "charge"})),
        tool_call_answer(("charge", {"amount": 5, "seconds": 600})),
        tools=("delegate", "tests.example_tools:TOOLS"),
    )
    parent = await harness.client.start("have it charged", spec)
    await wait_until(lambda: bool(notes(harness, parent, "charged")))
    [action] = (await parent.state()).pending
    return parent, harness.client.conversation(child_id(parent.id, action.seq))


async def was_stopped(
    harness: ConversationHarness, parent: Conversation, child: Conversation
) -> None:
    """The child is closed, and what it had done until then is kept."""
    await child.handle.result()
    assert (await child.state()).status == "closed"
    [stopped] = [
        error
        for error in await events(child, AgentErrorEvent)
        if error.classification == "interrupted"
    ]
    assert "charged 5" in stopped.error
    assert not [
        observation for observation in await observations(child) if "charged" in observation
    ]
    assert notes(harness, parent, "charged") == ["5"]


async def test_a_delegate_has_neither_the_recording_nor_the_outputs_of_its_parent(
    harness: ConversationHarness,
) -> None:
    call = {"id": "c1", "name": "delegate", "arguments": '{"task": "count"}'}
    recorded: dict[str, Any] = {"kind": "ActionEvent", "source": "agent", "llm_response_id": "r1"}
    recorded |= {"tool_name": "delegate", "tool_call_id": "c1", "tool_call": call}
    spec = harness.spec(
        text_answer("I count 3."),
        tool_call_answer(("finish", {"message": "It is 3.", "outputs": {"sum": 3}})),
        tools=("delegate", "finish"),
        limits={"max_budget": 2.0},
        app_name="shop",
        response_schema={"type": "object", "properties": {"sum": {"type": "integer"}}},
    )
    async with harness.worker():
        talk = await harness.client.start("Have it counted.", spec, replay=[recorded])
        result = await talk.result()
    assert (result.text, result.outputs) == ("It is 3.", {"sum": 3})
    assert any("I count 3." in text for text in await observations(talk))
    [action, _] = await events(talk, ActionEvent)
    seq = next(entry.seq for entry in await entries(talk) if entry.event.id == action.id)
    child = (await harness.client.conversation(child_id(talk.id, seq)).state()).spec
    assert child is not None
    assert (child.replay, child.response_schema, child.app_name) == (None, None, "shop")


async def test_an_interrupt_stops_the_delegate(harness: ConversationHarness) -> None:
    async with harness.worker():
        parent, child = await start_charging_delegate(harness)
        await parent.interrupt()
        await wait_for_status(parent, "idle")
        await was_stopped(harness, parent, child)
    [reported] = await events(parent, ObservationEvent)
    assert reported.observation.is_error
    assert f"Conversation {child.id}: closed" in reported.observation.content[0].text
    assert not (await parent.state()).pending


@pytest.mark.long
async def test_closing_a_conversation_closes_its_delegate(harness: ConversationHarness) -> None:
    async with harness.worker():
        parent, child = await start_charging_delegate(harness)
        await parent.close()
        await parent.handle.result()
        await was_stopped(harness, parent, child)
    state = await parent.state()
    assert (state.status, state.pending) == ("closed", ())


@pytest.mark.long
async def test_a_reopened_conversation_gets_the_report_of_its_delegate(
    harness: ConversationHarness,
) -> None:
    """Whose workflow ends with its parent's; its turn is over, and so it is left alone."""
    async with harness.worker():
        parent, child = await start_charging_delegate(harness)
        rewrite_script((await parent.state()).spec, text_answer("unused"), text_answer("told"))
        await parent.handle.terminate()
        await child.handle.result()
        before = await entries(child)
        assert (await reopen(harness.client, parent.id)).outcome == "reopened"
        await wait_for_status(parent, "finished")
        assert await entries(child) == before
    [reported] = await observations(parent)
    assert reported.startswith(f"Conversation {child.id}: closed")
    assert notes(harness, parent, "charged") == ["5"]


async def test_a_delegate_that_had_not_started_before_its_parent_was_lost_never_starts(
    harness: ConversationHarness, hesitant: SlowStore
) -> None:
    """Nobody can tell whether it was: the outcome is unknown."""
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "charge"})), text_answer("told"), tools=("delegate",)
    )
    hesitant.hesitate(5)
    async with harness.worker():
        parent = await harness.client.start("go", spec)
        await hesitant.reached.wait()
        await parent.handle.terminate()
        hesitant.may.set()
        await reopen(harness.client, parent.id)
        await wait_for_status(parent, "finished")
    [error] = await events(parent, AgentErrorEvent)
    assert error.classification == "outcome_unknown"
    assert not await harness.client.conversation(child_id(parent.id, 4)).exists()


async def test_a_delegate_outlives_a_parent_that_gave_it_up(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        parent, child = await start_charging_delegate(harness)
        rewrite_script(
            (await parent.state()).spec,
            text_answer("unused"),
            text_answer("told"),
            text_answer("uncertain"),
        )
        await child.handle.terminate()
        async with asyncio.timeout(60):
            await parent.wait_for_turn()
        assert (await reopen(harness.client, child.id)).outcome == "reopened"
        assert (await wait_for_status(child, "finished")).turn == 1
    [_, error] = await events(child, AgentErrorEvent)  # by the worker, where it was in time
    assert error.classification in ("interrupted", "outcome_unknown")
    [reported] = await observations(parent)
    assert "failed" in reported
    assert notes(harness, parent, "charged") == ["5"]
