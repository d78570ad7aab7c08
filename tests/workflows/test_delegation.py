"""What is done to a conversation that has delegated something is done to the other one too."""

import asyncio

from activities.delegate import child_id
from client.conversation import Conversation
from client.reopen import reopen
from events.tools import AgentErrorEvent, ObservationEvent
from tests.house import House, calls, says
from tests.left_behind import rewrite
from tests.workflows.test_adversity import Hesitant, hesitant
from tests.workflows.watching import entries, events, notes, observed, seen, until

__all__ = ["hesitant"]


async def charging(house: House) -> tuple[Conversation, Conversation]:
    """A conversation that waits for the one it delegated to, and that one, which charges."""
    spec = house.spec(
        calls(("delegate", {"task": "charge"})),
        calls(("charge", {"amount": 5, "seconds": 600})),
        tools=("delegate", "tests.tools_at_hand:TOOLS"),
    )
    parent = await house.client.start("have it charged", spec)
    await seen(lambda: bool(notes(house, parent, "charged")))
    [action] = (await parent.state()).pending
    return parent, house.client.conversation(child_id(parent.id, action.seq))


async def was_stopped(house: House, parent: Conversation, child: Conversation) -> None:
    """The child is closed, and what it had done until then is kept."""
    await child.handle.result()
    assert (await child.state()).status == "closed"
    [stopped] = [
        error
        for error in await events(child, AgentErrorEvent)
        if error.classification == "interrupted"
    ]
    assert "charged 5" in stopped.error
    assert not [one for one in await observed(child) if "charged" in one]
    assert notes(house, parent, "charged") == ["5"]


async def test_an_interrupt_stops_the_conversation_that_was_delegated_to(house: House) -> None:
    async with house.worker():
        parent, child = await charging(house)
        await parent.interrupt()
        await until(parent, "idle")
        await was_stopped(house, parent, child)
    [reported] = await events(parent, ObservationEvent)
    assert reported.observation.is_error
    assert f"Conversation {child.id}: closed" in reported.observation.content[0].text
    assert not (await parent.state()).pending


async def test_a_conversation_that_is_closed_closes_the_one_it_delegated_to(house: House) -> None:
    async with house.worker():
        parent, child = await charging(house)
        await parent.close()
        await parent.handle.result()
        await was_stopped(house, parent, child)
    state = await parent.state()
    assert (state.status, state.pending) == ("closed", ())


async def test_who_is_opened_again_is_told_what_became_of_the_one_it_delegated_to(
    house: House,
) -> None:
    """Whose workflow ends with its parent's; its turn is over, and so it is left alone."""
    async with house.worker():
        parent, child = await charging(house)
        rewrite((await parent.state()).spec, says("unused"), says("told"))
        await parent.handle.terminate()
        await child.handle.result()
        before = await entries(child)
        assert (await reopen(house.client, parent.id)).outcome == "reopened"
        await until(parent, "finished")
        assert await entries(child) == before
    [reported] = await observed(parent)
    assert reported.startswith(f"Conversation {child.id}: closed")
    assert notes(house, parent, "charged") == ["5"]


async def test_what_was_not_begun_before_its_workflow_was_lost_is_not_begun_after(
    house: House, hesitant: Hesitant
) -> None:
    """Nobody can tell whether it was: the outcome is unknown."""
    spec = house.spec(calls(("delegate", {"task": "charge"})), says("told"), tools=("delegate",))
    hesitant.hesitate(5)
    async with house.worker():
        parent = await house.client.start("go", spec)
        await hesitant.reached.wait()
        await parent.handle.terminate()
        hesitant.may.set()
        await reopen(house.client, parent.id)
        await until(parent, "finished")
    [error] = await events(parent, AgentErrorEvent)
    assert error.classification == "outcome_unknown"
    assert not await house.client.conversation(child_id(parent.id, 4)).exists()


async def test_a_conversation_that_was_given_up_by_its_parent_goes_on_by_itself(
    house: House,
) -> None:
    async with house.worker():
        parent, child = await charging(house)
        rewrite((await parent.state()).spec, says("unused"), says("told"), says("uncertain"))
        await child.handle.terminate()
        async with asyncio.timeout(60):
            await parent.finished()
        assert (await reopen(house.client, child.id)).outcome == "reopened"
        assert (await until(child, "finished")).turn == 1
    [_, error] = await events(child, AgentErrorEvent)  # by the worker, where it was in time
    assert error.classification in ("interrupted", "outcome_unknown")
    [reported] = await observed(parent)
    assert "failed" in reported
    assert notes(house, parent, "charged") == ["5"]
