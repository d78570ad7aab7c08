"""Limits of context, budget and history: conversations condense, or say why not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.agent.spec import NoCondenser, SummaryCondenser
from perdure.client.conversation import Conversation
from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.workflows.watching import (
    agent_texts,
    entries,
    events,
    notes,
    wait_for_growth,
    wait_for_status,
    workspace,
)

ALWAYS = Confirmation(policy="always")

TOO_LONG = {"status": 400, "code": "context_length_exceeded"}

BULK = "x" * 120_000
"""No message, so that it leaves a note; 35 of them are more than a run's history may hold."""


def add(nth: int) -> dict[str, Any]:
    return tool_call_answer(("add", {"a": nth, "b": 1}))


def billed(state: State) -> set[str]:
    """Return the requests that the model got."""
    return {on.split()[0] for on in state.usage_by_model}


@pytest.mark.long
async def test_a_long_conversation_is_summarised_again_and_again_and_ends_well(
    harness: ConversationHarness,
) -> None:
    condenser = SummaryCondenser(max_size=12, keep_first=2)
    spec = harness.spec(*map(add, range(15)), text_answer("done"), condenser=condenser)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
    made = await events(talk, Condensation)
    assert len(made) > 2
    assert all(item.summary.startswith("SUMMARY of") for item in made)
    assert (state.status, state.response_count) == ("finished", 16)
    assert len(state.forgotten_seqs) <= 2
    assert state.view_events <= 13
    assert billed(state) == {"chat", "condense"}


async def test_a_prompt_that_is_too_long_is_condensed_and_the_agent_goes_on(
    harness: ConversationHarness,
) -> None:
    answers = (*map(add, range(6)), text_answer("done"))
    spec = harness.spec(*answers, condenser=SummaryCondenser())
    limit_context(Path(spec.model.name.removeprefix("scripted:")), 9)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
    log = event_kinds(await entries(talk))
    assert log.count("CondensationRequest") == log.count("Condensation") >= 1
    at = log.index("CondensationRequest")
    assert log[at : at + 3] == ["CondensationRequest", "Condensation", "ActionEvent"]
    assert (state.status, state.response_count, state.overflows) == ("finished", 7, 0)
    assert billed(state) == {"chat", "condense"}


def limit_context(script: Path, most: int) -> None:
    """From now on the context window of the model holds `most` messages."""
    script.write_text(json.dumps({**json.loads(script.read_text()), "max_messages": most}))


async def test_a_prompt_that_stays_too_long_ends_the_turn_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(*map(add, range(4)), {"content": "never", "failures": [TOO_LONG] * 20})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
    [error] = await events(talk, ConversationErrorEvent)
    assert error.code == "context_overflow"
    assert "configure a model with a larger window" in error.detail
    assert (await entries(talk))[-1].event == error
    assert state.status == "error"
    assert len(await events(talk, CondensationRequest)) <= 4


async def test_a_person_has_a_conversation_condensed_while_nothing_else_goes_on(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(*map(add, range(6)), text_answer("done"), text_answer("and on"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        before = await talk.wait_for_turn()
        await talk.condense()
        async with asyncio.timeout(60):
            while not await events(talk, Condensation):
                await asyncio.sleep(0.02)
        state = await talk.state()
        assert (state.status, state.condense_reason) == ("finished", None)
        assert state.view_events < before.view_events
        await talk.send("go on", message_id="m")
        assert (await talk.wait_for_turn("m")).status == "finished"
    [request] = await events(talk, CondensationRequest)
    assert request.source == "user"


async def test_an_agent_has_its_view_condensed_before_it_is_asked_again(
    harness: ConversationHarness,
) -> None:
    asks = tool_call_answer(("request_condensation", {"reason": "The sums are done."}))
    tools = ("tests.example_tools:TOOLS", "request_condensation", "finish")
    spec = harness.spec(*map(add, range(6)), asks, text_answer("done"), tools=tools)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
    kinds = [entry.event.kind for entry in await entries(talk)]
    assert kinds[-4:] == ["ActionEvent", "ObservationEvent", "Condensation", "MessageEvent"]
    assert (state.response_count, state.condense_reason) == (8, None)


async def test_an_agent_without_a_condenser_that_asks_for_it_goes_on(
    harness: ConversationHarness,
) -> None:
    asks, tools = tool_call_answer(("request_condensation", {})), ("request_condensation",)
    spec = harness.spec(asks, text_answer("done"), tools=tools, condenser=NoCondenser())
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        assert (await talk.result()).text == "done"
    [update] = [
        event
        for event in await events(talk, ConversationStateUpdateEvent)
        if event.key == "not_condensed"
    ]
    assert "has no condenser" in update.value


async def test_a_spent_budget_ends_the_turn_after_a_last_word_and_a_larger_one_goes_on(
    harness: ConversationHarness,
) -> None:
    steps = [{**add(nth), "usage": {"cost": 0.5}} for nth in range(3)]
    spec = harness.spec(*steps, text_answer("done"), limits={"max_budget": 1.0})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
        assert state.status == "error"
        assert state.reason is not None
        assert state.reason.startswith("max_budget: The conversation has cost $1.0000 of its $1.")
        assert state.response_count == 2
        [warning] = await agent_texts(talk)
        assert "run out of the money" in warning
        assert state.pending == ()
        await talk.configure({"limits": {"max_budget": 5.0}})
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert (await talk.state()).usage.cost == 1.5


async def test_the_spending_of_a_delegate_counts_for_its_parent(
    harness: ConversationHarness,
) -> None:
    """The delegate's calls are the script's, from the first on: it cannot delegate."""
    spec = harness.spec(
        {**tool_call_answer(("delegate", {"task": "find the answer"})), "usage": {"cost": 0.25}},
        {**text_answer("The answer is 42."), "usage": {"cost": 0.25}},
        {**text_answer("It is 42."), "usage": {"cost": 0.25}},
        tools=("delegate",),
    )
    async with harness.worker():
        talk = await harness.client.start("delegate", spec)
        await talk.wait_for_turn()
        state = await talk.state()
    costs = {on.split()[0]: usage.cost for on, usage in state.usage_by_model.items()}
    assert costs == {"chat": 0.5, "delegate": 0.5}
    assert state.usage.cost == 1.0


# Beyond one run of the workflow, and its end


async def wait_for_next_run(talk: Conversation) -> None:
    """Fill the history until the workflow has gone on in a new run."""
    first = (await talk.handle.describe()).run_id
    await asyncio.gather(*(talk.handle.signal("send_message", BULK) for _ in range(40)))
    async with asyncio.timeout(60):
        while (await talk.handle.describe()).run_id == first:
            await asyncio.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("accept", [True, False])
async def test_an_action_that_waits_goes_on_waiting_in_the_next_run(
    harness: ConversationHarness, accept: bool
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("done"),
        confirmation=ALWAYS,
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        before = await wait_for_status(talk, "waiting_for_confirmation")
        await wait_for_next_run(talk)
        now = await talk.status()
        assert (now.status, now.pending) == ("waiting_for_confirmation", before.pending)
        await talk.respond(accept, [call.tool_call_id for call in now.pending])
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    assert notes(harness, talk, "charged") == (["5"] if accept else [])


@pytest.mark.long
async def test_a_pause_goes_on_in_the_next_run_until_somebody_resumes(
    harness: ConversationHarness, calls: dict[str, Any]
) -> None:
    meeting = tool_call_answer(("meet", {"name": "tool", "other": "go"}))
    spec = harness.spec(meeting, text_answer("done"), **calls)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await wait_for_growth(talk, "tool.call")
        await talk.pause()
        (workspace(harness, talk) / "go").touch()
        await wait_for_status(talk, "paused")
        await wait_for_next_run(talk)
        assert (await talk.status()).status == "paused"
        assert event_kinds(await entries(talk)).count("MessageEvent") == 1
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert (await talk.state()).turn == 1


async def test_a_workflow_that_is_cancelled_stops_its_tool_and_closes(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})), text_answer("never")
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await wait_for_growth(talk, "tool.call", "charged 5")
        await talk.handle.cancel()
        result = await talk.handle.result()
        assert result == await talk.status()
    assert result.status == "closed"
    log = await entries(talk)
    closed = log[-1].event
    assert isinstance(closed, ConversationStateUpdateEvent)
    assert (closed.key, closed.value) == ("status", "closed")
    [stopped] = await events(talk, AgentErrorEvent, ObservationEvent)
    assert stopped.classification == "interrupted"
    assert "charged 5" in stopped.error
    assert len(await events(talk, ActionEvent)) == 1
    assert [event.source for event in await events(talk, MessageEvent)] == ["user"]
