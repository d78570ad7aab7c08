"""What is too long, too dear or too much for one run: conversations get smaller, or say why not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.spec import Confirmation, SummaryCondenser
from agent.state import State
from client.conversation import Conversation
from events.condensation import Condensation, CondensationRequest
from events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from tests.house import House, calls, kinds, says
from tests.workflows.watching import entries, events, growing, notes, told, until, workspace

ALWAYS = Confirmation(policy="always")

TOO_LONG = {"status": 400, "code": "context_length_exceeded"}

BULK = "x" * 120_000
"""No message, so that it leaves a note; 35 of them are more than a run's history may hold."""


def add(nth: int) -> dict[str, Any]:
    return calls(("add", {"a": nth, "b": 1}))


def billed(state: State) -> set[str]:
    """What the model was asked for."""
    return {on.split()[0] for on in state.spent_on}


async def test_a_long_conversation_is_summarised_again_and_again_and_ends_well(
    house: House,
) -> None:
    condenser = SummaryCondenser(max_size=12, keep_first=2)
    spec = house.spec(*map(add, range(15)), says("done"), condenser=condenser)
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
    made = await events(talk, Condensation)
    assert len(made) > 2
    assert all(one.summary.startswith("SUMMARY of") for one in made)
    assert (state.status, state.answers) == ("finished", 16)
    assert len(state.forgotten) <= 2
    assert state.shown <= 13
    assert billed(state) == {"chat", "condense"}


async def test_a_prompt_that_is_too_long_is_condensed_and_the_agent_goes_on(house: House) -> None:
    spec = house.spec(*map(add, range(6)), says("done"))
    narrow(Path(spec.model.name.removeprefix("scripted:")), 9)
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
    log = kinds(await entries(talk))
    assert log.count("CondensationRequest") == log.count("Condensation") >= 1
    at = log.index("CondensationRequest")
    assert log[at : at + 3] == ["CondensationRequest", "Condensation", "ActionEvent"]
    assert (state.status, state.answers, state.overflows) == ("finished", 7, 0)
    assert billed(state) == {"chat", "condense"}


def narrow(script: Path, most: int) -> None:
    """From now on the context window of the model holds `most` messages."""
    script.write_text(json.dumps({**json.loads(script.read_text()), "max_messages": most}))


async def test_a_prompt_that_stays_too_long_ends_the_turn_with_a_sentence(house: House) -> None:
    spec = house.spec(*map(add, range(4)), {"content": "never", "failures": [TOO_LONG] * 20})
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
    [error] = await events(talk, ConversationErrorEvent)
    assert error.code == "context_overflow"
    assert "configure a model with a larger window" in error.detail
    assert (await entries(talk))[-1].event == error
    assert state.status == "error"
    assert len(await events(talk, CondensationRequest)) <= 4


async def test_a_person_has_a_conversation_condensed_while_nothing_else_goes_on(
    house: House,
) -> None:
    spec = house.spec(*map(add, range(6)), says("done"), says("and on"))
    async with house.worker():
        talk = await house.client.start("go", spec)
        before = await talk.finished()
        await talk.condense()
        async with asyncio.timeout(60):
            while not await events(talk, Condensation):
                await asyncio.sleep(0.02)
        state = await talk.state()
        assert (state.status, state.condense) == ("finished", None)
        assert state.shown < before.shown
        await talk.send("go on", message_id="m")
        assert (await talk.finished("m")).status == "finished"
    [request] = await events(talk, CondensationRequest)
    assert request.source == "user"


async def test_a_spent_budget_ends_the_turn_after_a_last_word_and_a_larger_one_goes_on(
    house: House,
) -> None:
    steps = [{**add(nth), "usage": {"cost": 0.5}} for nth in range(3)]
    spec = house.spec(*steps, says("done"), limits={"max_budget": 1.0})
    async with house.worker():
        talk = await house.client.start("go", spec)
        state = await talk.finished()
        assert state.status == "error"
        assert state.reason is not None
        assert state.reason.startswith("max_budget: The conversation has cost $1.0000 of its $1.")
        assert state.answers == 2
        [warning] = await told(talk)
        assert "run out of the money" in warning
        assert state.pending == ()
        await talk.configure({"limits": {"max_budget": 5.0}})
        await talk.resume()
        await until(talk, "finished")
    assert (await talk.state()).spent.cost == 1.5


async def test_what_a_delegate_spends_is_on_its_parents_bill(house: House) -> None:
    """Its calls are the script's, from the first on: there is no delegating for a delegate."""
    spec = house.spec(
        {**calls(("delegate", {"task": "find the answer"})), "usage": {"cost": 0.25}},
        {**says("The answer is 42."), "usage": {"cost": 0.25}},
        {**says("It is 42."), "usage": {"cost": 0.25}},
        tools=("delegate",),
    )
    async with house.worker():
        talk = await house.client.start("delegate", spec)
        await talk.finished()
        state = await talk.state()
    costs = {on.split()[0]: usage.cost for on, usage in state.spent_on.items()}
    assert costs == {"chat": 0.5, "delegate": 0.5}
    assert state.spent.cost == 1.0


# Beyond one run of the workflow, and its end


async def continued(talk: Conversation) -> None:
    """Fill the history until the workflow has gone on in a new run."""
    first = (await talk.handle.describe()).run_id
    await asyncio.gather(*(talk.handle.signal("send_message", BULK) for _ in range(40)))
    async with asyncio.timeout(60):
        while (await talk.handle.describe()).run_id == first:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("accept", [True, False])
async def test_an_action_that_waits_goes_on_waiting_in_the_next_run(
    house: House, accept: bool
) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})), says("done"), confirmation=ALWAYS
    )
    async with house.worker():
        talk = await house.client.start("charge", spec)
        before = await until(talk, "waiting_for_confirmation")
        await continued(talk)
        now = await talk.status()
        assert (now.status, now.pending) == ("waiting_for_confirmation", before.pending)
        await talk.respond(accept, [call.tool_call_id for call in now.pending])
        state = await talk.finished()
    assert state.status == "finished"
    assert notes(house, talk, "charged") == (["5"] if accept else [])


async def test_a_pause_goes_on_in_the_next_run_until_somebody_resumes(house: House) -> None:
    spec = house.spec(calls(("meet", {"name": "tool", "other": "go"})), says("done"))
    async with house.worker():
        talk = await house.client.start("go", spec)
        await growing(talk, "tool.call")
        await talk.pause()
        (workspace(house, talk) / "go").touch()
        await until(talk, "paused")
        await continued(talk)
        assert (await talk.status()).status == "paused"
        assert kinds(await entries(talk)).count("MessageEvent") == 1
        await talk.resume()
        await until(talk, "finished")
    assert (await talk.state()).turn == 1


async def test_a_workflow_that_is_cancelled_stops_its_tool_and_closes(house: House) -> None:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 60})), says("never"))
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await growing(talk, "tool.call", "charged 5")
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
    assert [one.source for one in await events(talk, MessageEvent)] == ["user"]
