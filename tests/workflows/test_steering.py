"""People steer a conversation while it runs: interrupt, confirm, reject, configure, delegate."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent, NamedAgent
from perdure.client.conversation import Conversation
from perdure.client.workflow import ConversationWorkflow
from perdure.events.control import ConversationStateUpdateEvent, InterruptEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.state import read_agent
from tests.harness import ConversationHarness, remove_chunk_delay, text_answer, tool_call_answer
from tests.workflows.watching import (
    entries,
    events,
    notes,
    wait_for_growth,
    wait_for_status,
    wait_until,
)

ALWAYS = Confirmation(policy="always")


async def update_error(talk: Conversation, update: str, argument: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await talk.handle.execute_update(update, argument)
    return str(failed.value.cause)


async def test_the_status_is_that_of_the_log_until_a_reopened_workflow_has_read_it(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = harness.spec(tool_call_answer(("add", {"a": 1, "b": 2})), confirmation=ALWAYS)
    async with harness.worker():
        talk = await harness.client.start("add", spec)
        waits = await wait_for_status(talk, "waiting_for_confirmation")

        async def query_status(workflow: ConversationWorkflow) -> ConversationStatus:
            return build_status(workflow.log.conversation_id, State(), waiting=2)

        monkeypatch.setattr(ConversationWorkflow, "query_status", query_status)
        now = await talk.status()
        assert (now.status, now.pending, now.waiting) == (waits.status, waits.pending, 2)

        async def refuse(_: object) -> None:
            raise StoreUnavailable("The store is away.")

        monkeypatch.setattr("perdure.client.status.read_logged_status", refuse)
        assert (await talk.status()).status == "idle"


async def test_an_interrupt_stops_a_tool_and_keeps_its_partial_output(
    harness: ConversationHarness, calls: dict[str, Any]
) -> None:
    charging = tool_call_answer(("charge", {"amount": 5, "seconds": 60}))
    spec = harness.spec(charging, text_answer("stopped, then"), **calls)
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        await talk.handle.signal("interrupt")
        now = await wait_for_status(talk, "idle")
        assert now.reason == "interrupted by the user"
        [error] = await events(talk, AgentErrorEvent)
        assert error.classification == "interrupted"
        assert "charged 5" in error.error
        assert len(await events(talk, InterruptEvent)) == 1
        await talk.send("go on", message_id="m")
        state = await talk.wait_for_turn("m")
    assert state.status == "finished"
    assert notes(harness, talk, "charged") == ["5"]


async def test_an_interrupt_stops_the_model_and_keeps_its_partial_text(
    harness: ConversationHarness, calls: dict[str, Any]
) -> None:
    slow = {"content": "one two three", "chunk_delay": 60}
    async with harness.worker():
        spec = harness.spec(slow, text_answer("again"), **calls)
        talk = await harness.client.start("count", spec)
        await wait_for_growth(talk, "llm.chat", "one")
        await talk.handle.signal("interrupt")
        await wait_for_status(talk, "idle")
        [partial] = [e for e in await events(talk, MessageEvent) if e.source == "agent"]
        assert partial.sender == "interrupted"
        assert partial.llm_message.content[0].text.startswith("one")
        remove_chunk_delay(spec)
        await talk.resume()
        state = await talk.wait_for_turn()
        await wait_for_status(talk, "finished")
    assert state.turn == 1


async def test_a_waiting_action_runs_once_a_person_has_named_it(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("done"),
        confirmation=ALWAYS,
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        now = await wait_for_status(talk, "waiting_for_confirmation")
        assert not notes(harness, talk, "charged")
        [call] = now.pending
        assert call.asks
        await talk.resume()  # is no consent
        assert "Name the calls" in await update_error(talk, "respond", {"accept": True})
        unknown = {"accept": True, "calls": ["other"]}
        assert "No call 'other' waits" in await update_error(talk, "respond", unknown)
        assert not notes(harness, talk, "charged")
        answered = await talk.handle.execute_update(
            "respond", {"accept": True, "calls": [call.tool_call_id]}
        )
        assert answered == [call.tool_call_id]
        state = await talk.wait_for_turn()
    assert notes(harness, talk, "charged") == ["5"]
    assert state.status == "finished"


async def test_a_rejected_action_never_runs_and_the_agent_is_told_why(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(
            ("charge", {"amount": 5, "seconds": 0}), ("charge", {"amount": 7, "seconds": 0})
        ),
        text_answer("as you wish"),
        confirmation=ALWAYS,
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        now = await wait_for_status(talk, "waiting_for_confirmation")
        first, second = (call.tool_call_id for call in now.pending)
        await talk.handle.execute_update(
            "respond", {"accept": False, "calls": [first], "reason": "too dear"}
        )
        assert (await talk.status()).status == "waiting_for_confirmation"
        await talk.handle.execute_update("respond", {"accept": True, "calls": [second]})
        await talk.wait_for_turn()
    [rejected] = await events(talk, UserRejectObservation)
    assert rejected.rejection_reason == "too dear"
    assert notes(harness, talk, "charged") == ["7"]


async def test_a_rejected_waiting_action_never_runs(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("I will not."),
        confirmation=ALWAYS,
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
        await talk.send("No!", message_id="m")
        await talk.wait_for_turn("m")
        [rejected] = await events(talk, UserRejectObservation)
        assert "new message" in rejected.rejection_reason
        await wait_for_status(talk, "finished")
    assert not notes(harness, talk, "charged")


async def test_a_rejection_works_without_a_running_workflow(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("I will not."),
        confirmation=ALWAYS,
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
        await talk.handle.terminate()
        await talk.send("No!", message_id="m")
        await talk.wait_for_turn("m")
        await wait_for_status(talk, "finished")
    assert len(await events(talk, UserRejectObservation)) == 1
    assert not notes(harness, talk, "charged")


async def test_calls_that_only_read_run_side_by_side(
    harness: ConversationHarness, calls: dict[str, Any]
) -> None:
    """Each waits for the other: alone, neither would ever be done."""
    spec = harness.spec(
        tool_call_answer(
            ("meet", {"name": "a", "other": "b"}), ("meet", {"name": "b", "other": "a"})
        ),
        text_answer("met"),
        **calls,
    )
    async with harness.worker():
        talk = await harness.client.start("meet", spec)
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    action_ids = [event.id for event in await events(talk, ActionEvent)]
    answered = [event.action_id for event in await events(talk, ObservationEvent)]
    assert sorted(answered) == sorted(action_ids)


async def test_a_raised_limit_and_a_resumption_go_on(harness: ConversationHarness) -> None:
    steps = [tool_call_answer(("add", {"a": nth, "b": 1})) for nth in range(4)]
    spec = harness.spec(*steps, text_answer("done"), limits={"max_iterations": 3})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
        assert state.status == "error"
        assert state.reason is not None
        assert state.reason.startswith("max_iterations")
        messages = [e for e in await events(talk, MessageEvent) if e.source == "environment"]
        assert len(messages) == 1
        assert "last answer" in messages[0].llm_message.content[0].text
        assert "'tools' cannot be changed" in await update_error(talk, "configure", {"tools": []})
        await talk.handle.execute_update("configure", {"limits": {"max_iterations": 9}})
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert (await talk.state()).response_count == 5


@pytest.mark.long
async def test_a_deadline_stops_running_steps_and_keeps_their_partial_output(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        for seconds in (2, 10, 50):  # a slow machine may need more to come to the call at all
            talk = await harness.client.start("charge", spec_charging_for(harness, seconds))
            state = await talk.wait_for_turn()
            if notes(harness, talk, "charged"):
                break
        await wait_for_status(talk, "error")
    assert state.reason is not None
    assert state.reason.startswith("deadline: The deadline of ")
    [error] = await events(talk, AgentErrorEvent)
    assert error.classification == "interrupted"
    assert "by a deadline" in error.error
    assert "charged 5" in error.error
    assert notes(harness, talk, "charged") == ["5"]
    assert not await events(talk, InterruptEvent)


def spec_charging_for(harness: ConversationHarness, seconds: float) -> Agent:
    """A minute of charging, with so long until the deadline."""
    deadline = datetime.now(UTC) + timedelta(seconds=seconds)
    return harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})),
        limits={"deadline": deadline.strftime("%Y-%m-%dT%H:%M:%S.%f")},
    )


async def test_a_task_is_delegated_within_the_budget_and_reported(
    harness: ConversationHarness,
) -> None:
    child = text_answer("The answer is 42.")
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "find the answer", "max_budget": 5})),
        child,
        text_answer("It is 42."),
        tools=("delegate", "tests.example_tools:TOOLS"),
        limits={"max_budget": 2.0},
    )
    async with harness.worker():
        talk = await harness.client.start("delegate", spec)
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    [reported] = await events(talk, ObservationEvent)
    text = reported.observation.content[0].text
    assert "The answer is 42." in text
    other = harness.client.conversation(text.split()[1].rstrip(":"))
    child_state = await other.state()
    assert child_state.spec is not None
    assert child_state.spec.limits.max_budget == 2.0
    assert "delegate" not in child_state.spec.tools
    opened = (await entries(other))[0].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    parent = opened.value["parent"]
    assert (parent["conversation_id"], parent["action"]) == (talk.id, 4)


async def test_named_agents_do_tasks_side_by_side_within_what_the_delegating_one_may(
    harness: ConversationHarness,
) -> None:
    counter = harness.spec(text_answer("I count 3."), tools=("finish",), limits={"max_budget": 9.0})
    writer = harness.spec(text_answer("I write."), confirmation=Confirmation(policy="always"))
    spec = harness.spec(
        tool_call_answer(
            ("delegate", {"task": "count", "agent": "counter", "max_budget": 5}),
            ("delegate", {"task": "write", "agent": "writer", "max_iterations": 2}),
            ("delegate", {"task": "dance", "agent": "dancer"}),
        ),
        text_answer("Done."),
        tools=("delegate",),
        limits={"max_budget": 2.0},
        delegates=(
            NamedAgent(name="counter", description="Counts.", agent=counter),
            NamedAgent(name="writer", agent=writer),
        ),
    )
    async with harness.worker():
        talk = await harness.client.start("delegate", spec)
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    [refused] = await events(talk, AgentErrorEvent)
    assert "no agent 'dancer': use one of counter, writer" in refused.error
    [prompt] = await events(talk, SystemPromptEvent)
    [offered] = prompt.tools
    assert "* counter: Counts.\n* writer\n" in offered.description
    reports = [it.observation.content[0].text for it in await events(talk, ObservationEvent)]
    assert sorted(text.rsplit("\n", 1)[1] for text in reports) == ["I count 3.", "I write."]
    children = [harness.client.conversation(text.split()[1].rstrip(":")) for text in reports]
    agents = {}
    for child in children:
        agent = await read_agent(child.log, await child.state())
        assert agent is not None
        agents[agent.model.name] = agent
    counted, written = agents[counter.model.name], agents[writer.model.name]
    assert (counted.tools, counted.limits.max_budget) == (("finish",), 1.0)
    assert (written.confirmation.policy, written.limits.max_iterations) == ("always", 2)
    assert state.spec is not None
    assert state.spec.delegates == ()  # a workflow carries none of them


async def test_a_title_comes_from_its_own_model(harness: ConversationHarness) -> None:
    spec = harness.spec(text_answer("hello"))
    spec = spec.model_copy(update={"title_model": spec.model})
    async with harness.worker():
        talk = await harness.client.start("Say hello to the world", spec)
        await talk.wait_for_turn()
        async with asyncio.timeout(30):
            while not (await talk.status()).title:
                await asyncio.sleep(0.05)
    assert (await talk.state()).response_count == 1


@pytest.mark.long
async def test_a_message_is_recorded_once_however_late_it_comes_again(
    harness: ConversationHarness,
) -> None:
    """Of 300 messages a state has the ids; all others are looked for in the log."""
    async with harness.worker():
        talk = await harness.client.start("first", harness.spec(text_answer("ok")), message_id="a")
        await talk.wait_for_turn()
        first = (await talk.state()).message_seqs["a"]
        await talk.pause()
        await wait_for_status(talk, "paused")
        for nth in range(310):
            await talk.send(f"message {nth}", message_id=f"m{nth}")
        last = await talk.submit("the last", message_id="last")
        again = await talk.submit("first", message_id="a")
        await talk.send("message 3", message_id="m3")
        new = await talk.submit("a new one", message_id="b")
        messages = [entry.event for entry in await entries(talk)]
    ids = [event.message_id for event in messages if isinstance(event, MessageEvent)]
    assert again.seq == first
    assert new.seq > last.seq
    assert sorted(name for name in ids if name) == sorted(
        ["a", "b", "last", *(f"m{nth}" for nth in range(310))]
    )
