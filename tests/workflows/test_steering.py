"""People steer a conversation while it runs: interrupt, confirm, reject, configure, delegate."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from agent.spec import Confirmation, Spec
from client.conversation import Conversation
from events.control import ConversationStateUpdateEvent, InterruptEvent
from events.messages import MessageEvent
from events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from tests.house import House, calls, hurry, says
from tests.workflows.watching import entries, events, growing, notes, seen, until

ALWAYS = Confirmation(policy="always")


async def refused(talk: Conversation, update: str, asked: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await talk.handle.execute_update(update, asked)
    return str(failed.value.cause)


async def test_an_interrupt_stops_a_tool_and_keeps_what_it_had_so_far(house: House) -> None:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 60})), says("stopped, then"))
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        await talk.handle.signal("interrupt")
        now = await until(talk, "idle")
        assert now.reason == "interrupted by the user"
        [error] = await events(talk, AgentErrorEvent)
        assert error.classification == "interrupted"
        assert "charged 5" in error.error
        assert len(await events(talk, InterruptEvent)) == 1
        await talk.send("go on", message_id="m")
        state = await talk.finished("m")
    assert state.status == "finished"
    assert notes(house, talk, "charged") == ["5"]


async def test_an_interrupt_stops_the_model_and_keeps_what_it_had_said(house: House) -> None:
    slow = {"content": "one two three", "chunk_delay": 60}
    async with house.worker():
        spec = house.spec(slow, says("again"))
        talk = await house.client.start("count", spec)
        await growing(talk, "llm.chat", "one")
        await talk.handle.signal("interrupt")
        await until(talk, "idle")
        [partial] = [e for e in await events(talk, MessageEvent) if e.source == "agent"]
        assert partial.sender == "interrupted"
        assert partial.llm_message.content[0].text.startswith("one")
        hurry(spec)
        await talk.resume()
        state = await talk.finished()
        await until(talk, "finished")
    assert state.turn == 1


async def test_a_waiting_action_runs_once_a_person_has_named_it(house: House) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})), says("done"), confirmation=ALWAYS
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        now = await until(talk, "waiting_for_confirmation")
        assert not notes(house, talk, "charged")
        [call] = now.pending
        assert call.asks
        await talk.resume()  # is no consent
        assert "Name the calls" in await refused(talk, "respond", {"accept": True})
        unknown = {"accept": True, "calls": ["other"]}
        assert "No call 'other' waits" in await refused(talk, "respond", unknown)
        assert not notes(house, talk, "charged")
        answered = await talk.handle.execute_update(
            "respond", {"accept": True, "calls": [call.tool_call_id]}
        )
        assert answered == [call.tool_call_id]
        state = await talk.finished()
    assert notes(house, talk, "charged") == ["5"]
    assert state.status == "finished"


async def test_a_rejected_action_never_runs_and_the_agent_is_told_why(house: House) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0}), ("charge", {"amount": 7, "seconds": 0})),
        says("as you wish"),
        confirmation=ALWAYS,
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        now = await until(talk, "waiting_for_confirmation")
        first, second = (call.tool_call_id for call in now.pending)
        await talk.handle.execute_update(
            "respond", {"accept": False, "calls": [first], "reason": "too dear"}
        )
        assert (await talk.status()).status == "waiting_for_confirmation"
        await talk.handle.execute_update("respond", {"accept": True, "calls": [second]})
        await talk.finished()
    [rejected] = await events(talk, UserRejectObservation)
    assert rejected.rejection_reason == "too dear"
    assert notes(house, talk, "charged") == ["7"]


async def test_no_said_while_an_action_waits_never_runs_it(house: House) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})), says("I will not."), confirmation=ALWAYS
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await until(talk, "waiting_for_confirmation")
        await talk.send("No!", message_id="m")
        await talk.finished("m")
        [rejected] = await events(talk, UserRejectObservation)
        assert "new message" in rejected.rejection_reason
        await until(talk, "finished")
    assert not notes(house, talk, "charged")


async def test_no_said_to_a_conversation_whose_workflow_is_gone_rejects_too(house: House) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})), says("I will not."), confirmation=ALWAYS
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await until(talk, "waiting_for_confirmation")
        await talk.handle.terminate()
        await talk.send("No!", message_id="m")
        await talk.finished("m")
        await until(talk, "finished")
    assert len(await events(talk, UserRejectObservation)) == 1
    assert not notes(house, talk, "charged")


async def test_calls_that_only_read_run_side_by_side(house: House) -> None:
    """Each waits for the other: alone, neither would ever be done."""
    spec = house.spec(
        calls(("meet", {"name": "a", "other": "b"}), ("meet", {"name": "b", "other": "a"})),
        says("met"),
    )
    async with house.worker():
        talk = await house.client.start("meet", spec)
        state = await talk.finished()
    assert state.status == "finished"
    asked = [event.id for event in await events(talk, ActionEvent)]
    answered = [event.action_id for event in await events(talk, ObservationEvent)]
    assert sorted(answered) == sorted(asked)


async def test_a_raised_limit_and_a_resumption_go_on(house: House) -> None:
    steps = [calls(("add", {"a": nth, "b": 1})) for nth in range(4)]
    spec = house.spec(*steps, says("done"), limits={"max_iterations": 3})
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
        assert state.status == "error"
        assert state.reason is not None
        assert state.reason.startswith("max_iterations")
        told = [e for e in await events(talk, MessageEvent) if e.source == "environment"]
        assert len(told) == 1
        assert "last answer" in told[0].llm_message.content[0].text
        assert "'tools' cannot be changed" in await refused(talk, "configure", {"tools": []})
        await talk.handle.execute_update("configure", {"limits": {"max_iterations": 9}})
        await talk.resume()
        await until(talk, "finished")
    assert (await talk.state()).answers == 5


async def test_a_deadline_stops_what_runs_and_keeps_what_it_had_so_far(house: House) -> None:
    async with house.worker():
        for seconds in (2, 10, 50):  # a slow machine may need more to come to the call at all
            talk = await house.client.start("charge", charging_until(house, seconds))
            state = await talk.finished()
            if notes(house, talk, "charged"):
                break
        await until(talk, "error")
    assert state.reason is not None
    assert state.reason.startswith("deadline: The deadline of ")
    [error] = await events(talk, AgentErrorEvent)
    assert error.classification == "interrupted"
    assert "by a deadline" in error.error
    assert "charged 5" in error.error
    assert notes(house, talk, "charged") == ["5"]
    assert not await events(talk, InterruptEvent)


def charging_until(house: House, seconds: float) -> Spec:
    """A minute of charging, with so long until the deadline."""
    deadline = datetime.now(UTC) + timedelta(seconds=seconds)
    return house.spec(
        calls(("charge", {"amount": 5, "seconds": 60})),
        limits={"deadline": deadline.strftime("%Y-%m-%dT%H:%M:%S.%f")},
    )


async def test_a_task_is_delegated_within_the_budget_and_reported(house: House) -> None:
    child = says("The answer is 42.")
    spec = house.spec(
        calls(("delegate", {"task": "find the answer", "max_budget": 5})),
        child,
        says("It is 42."),
        tools=("delegate", "tests.tools_at_hand:TOOLS"),
        limits={"max_budget": 2.0},
    )
    async with house.worker():
        talk = await house.client.start("delegate", spec)
        state = await talk.finished()
    assert state.status == "finished"
    [reported] = await events(talk, ObservationEvent)
    text = reported.observation.content[0].text
    assert "The answer is 42." in text
    other = house.client.conversation(text.split()[1].rstrip(":"))
    told = await other.state()
    assert told.spec is not None
    assert told.spec.limits.max_budget == 2.0
    assert "delegate" not in told.spec.tools
    opened = (await entries(other))[0].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    parent = opened.value["parent"]
    assert (parent["conversation_id"], parent["action"]) == (talk.id, 4)


async def test_a_title_comes_from_its_own_model(house: House) -> None:
    spec = house.spec(says("hello"))
    spec = spec.model_copy(update={"title_model": spec.model})
    async with house.worker():
        talk = await house.client.start("Say hello to the world", spec)
        await talk.finished()
        async with asyncio.timeout(30):
            while not (await talk.status()).title:
                await asyncio.sleep(0.05)
    assert (await talk.state()).answers == 1
