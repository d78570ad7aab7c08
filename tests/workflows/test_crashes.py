"""Workers die in the middle of things; conversations go on, and no deed is done twice."""

import asyncio

import pytest

from agent.state import State
from client.conversation import Conversation
from embedded.temporal import TemporalServer
from events.messages import MessageEvent
from events.tools import AgentErrorEvent, ObservationEvent
from tests.house import House, calls, kinds, says
from tests.workers import WorkerProcess, worker_process
from tests.workflows.watching import entries, notes, seen

Environment = dict[str, str]


@pytest.fixture
def environment(house: House, temporal_server: TemporalServer) -> Environment:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }


async def test_a_call_that_may_have_had_an_effect_is_never_made_twice(
    house: House, environment: Environment
) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 60})), says("I will check."), heartbeat_timeout=1
    )
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge 5", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        await asyncio.sleep(0.6)  # a heartbeat with the output goes out
        one.kill()
        with worker_process(environment, house.folder / "two.log"):
            async with asyncio.timeout(60):
                state = await talk.finished()

    assert notes(house, talk, "charged") == ["5"]
    log = [entry.event for entry in await entries(talk)]
    [answer] = [event for event in log if isinstance(event, AgentErrorEvent | ObservationEvent)]
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "outcome_unknown"
    assert '"amount": 5' in answer.error
    assert "charged 5" in answer.error
    assert state.status == "finished"


@pytest.mark.long
async def test_a_call_that_does_no_harm_is_made_again(
    house: House, environment: Environment
) -> None:
    spec = house.spec(calls(("look", {"seconds": 3})), says("done"), heartbeat_timeout=1)
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("look", spec)
        await seen(lambda: bool(notes(house, talk, "looked")))
        one.kill()
        with worker_process(environment, house.folder / "two.log"):
            async with asyncio.timeout(60):
                await talk.finished()

    assert notes(house, talk, "looked") == ["1", "1"]
    assert kinds(await entries(talk)).count("ObservationEvent") == 1
    assert "AgentErrorEvent" not in kinds(await entries(talk))


@pytest.mark.long
async def test_a_result_that_comes_after_its_call_was_given_up_is_no_second_observation(
    house: House, environment: Environment
) -> None:
    """A worker that hangs and wakes again is a zombie: what it brings is kept, and noted."""
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 2})), says("I will check."), heartbeat_timeout=1
    )
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge 5", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        one.freeze()
        with worker_process(environment, house.folder / "two.log"):
            async with asyncio.timeout(60):
                await talk.finished()
            before = await entries(talk)
            one.thaw()
            await seen(lambda: "late result" in one.log.read_text())

    assert await entries(talk) == before
    answers = [e.event for e in before if isinstance(e.event, AgentErrorEvent | ObservationEvent)]
    assert [type(answer) for answer in answers] == [AgentErrorEvent]


@pytest.mark.long
async def test_a_conversation_survives_its_worker_being_killed_again_and_again(
    house: House, environment: Environment
) -> None:
    steps = [calls(("look", {"seconds": 0.2 + nth / 1000})) for nth in range(12)]
    spec = house.spec(*steps, says("done"), heartbeat_timeout=1)
    talk = await house.client.start("go", spec)
    finished = asyncio.ensure_future(talk.finished())
    kills = 0
    while not finished.done():
        with worker_process(environment, house.folder / "w.log") as worker:
            before = await talk.log.end()
            await _progress(talk, before + 8, finished)
            worker.kill()
            kills += 1
    state = await finished

    assert kills > 2
    assert state.status == "finished"
    log = await entries(talk)
    assert kinds(log).count("ActionEvent") == kinds(log).count("ObservationEvent") == 12
    assert len([e for e in log if isinstance(e.event, MessageEvent)]) == 2


async def _progress(talk: Conversation, end: int, finished: "asyncio.Future[State]") -> None:
    async with asyncio.timeout(60):
        while await talk.log.end() < end and not finished.done():
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_a_conversation_outlives_its_workflow(house: House, environment: Environment) -> None:
    """Whatever ended the workflow, the next message opens the conversation from its log."""
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 60})), says("Lost it."), says("hello again")
    )
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge 5", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        await talk.handle.terminate("an operator's mistake")
        one.kill()
        with worker_process(environment, house.folder / "two.log"):
            await talk.send("are you there?", message_id="m")
            async with asyncio.timeout(60):
                state = await talk.finished("m")

    assert notes(house, talk, "charged") == ["5"]
    log = [entry.event for entry in await entries(talk)]
    [answer] = [event for event in log if isinstance(event, AgentErrorEvent | ObservationEvent)]
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "outcome_unknown"
    assert state.status == "finished"


@pytest.mark.long
def test_a_worker_that_is_asked_to_stop_ends_by_itself(
    environment: Environment, house: House
) -> None:
    with worker_process(environment, house.folder / "one.log") as one:
        _polls(one)
        assert one.stop() == 0


def _polls(worker: WorkerProcess) -> None:
    while "polls" not in worker.log.read_text():
        assert worker.process.poll() is None, worker.log.read_text()
