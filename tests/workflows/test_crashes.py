"""Workers crash in the middle of steps; conversations go on, and no effect happens twice."""

import asyncio

import pytest

from perdure.agent.loop.state import State
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.events.messages import MessageEvent
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.workers import WorkerProcess, worker_process
from tests.workflows.watching import entries, notes, observations, wait_until, workspace

Environment = dict[str, str]


@pytest.fixture
def environment(harness: ConversationHarness, temporal_server: TemporalServer) -> Environment:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }


@pytest.mark.long
async def test_a_call_that_may_have_had_an_effect_is_never_made_twice(
    harness: ConversationHarness, environment: Environment
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})),
        text_answer("I will check."),
        heartbeat_timeout=1,
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge 5", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        await asyncio.sleep(0.6)  # a heartbeat with the output goes out
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            async with asyncio.timeout(60):
                state = await talk.wait_for_turn()

    assert notes(harness, talk, "charged") == ["5"]
    log = [entry.event for entry in await entries(talk)]
    [answer] = [event for event in log if isinstance(event, AgentErrorEvent | ObservationEvent)]
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "outcome_unknown"
    assert '"amount": 5' in answer.error
    assert "charged 5" in answer.error
    assert state.status == "finished"


@pytest.mark.long
@pytest.mark.parametrize("replays", [False, True])
async def test_a_lost_cell_is_not_run_twice_and_its_kernel_is_made_again_where_that_is_allowed(
    harness: ConversationHarness, environment: Environment, replays: bool
) -> None:
    effect = "with open('effects', 'a') as file: file.write('{}')"
    spec = harness.spec(
        tool_call_answer(("ipython", {"code": f"n = 1\n{effect.format('a')}"})),
        tool_call_answer(
            ("ipython", {"code": f"{effect.format('b')}\nimport time; time.sleep(60)"})
        ),
        tool_call_answer(("ipython", {"code": "print('n' in dir(), open('effects').read())"})),
        text_answer("I have looked."),
        tools=("ipython",),
        heartbeat_timeout=1,
        replay_cells=replays,
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("compute", spec)
        effects = workspace(harness, talk) / "effects"
        await wait_until(lambda: effects.exists() and effects.read_text() == "ab")
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            async with asyncio.timeout(60):
                await talk.wait_for_turn()

    last = (await observations(talk))[-1]
    assert last.endswith("True aba" if replays else "False ab")
    assert ("Lost names: file, time" if replays else "Lost names: n, file, time") in last


@pytest.mark.long
async def test_a_call_that_does_no_harm_is_made_again(
    harness: ConversationHarness, environment: Environment
) -> None:
    spec = harness.spec(
        tool_call_answer(("look", {"seconds": 3})), text_answer("done"), heartbeat_timeout=1
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("look", spec)
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            async with asyncio.timeout(60):
                await talk.wait_for_turn()

    assert notes(harness, talk, "looked") == ["1", "1"]
    assert event_kinds(await entries(talk)).count("ObservationEvent") == 1
    assert "AgentErrorEvent" not in event_kinds(await entries(talk))


@pytest.mark.long
async def test_a_result_that_comes_after_its_call_was_given_up_is_no_second_observation(
    harness: ConversationHarness, environment: Environment
) -> None:
    """A worker that hangs and wakes again is a zombie: what it brings is kept, and noted."""
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 2})),
        text_answer("I will check."),
        heartbeat_timeout=1,
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge 5", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        worker.freeze()
        with worker_process(environment, harness.folder / "two.log"):
            async with asyncio.timeout(60):
                await talk.wait_for_turn()
            before = await entries(talk)
            worker.thaw()
            await wait_until(lambda: "late result" in worker.log.read_text())

    assert await entries(talk) == before
    answers = [e.event for e in before if isinstance(e.event, AgentErrorEvent | ObservationEvent)]
    assert [type(answer) for answer in answers] == [AgentErrorEvent]


@pytest.mark.longest
async def test_a_conversation_survives_its_worker_being_killed_again_and_again(
    harness: ConversationHarness, environment: Environment
) -> None:
    steps = [tool_call_answer(("look", {"seconds": 0.2 + nth / 1000})) for nth in range(12)]
    spec = harness.spec(*steps, text_answer("done"), heartbeat_timeout=1)
    talk = await harness.client.start("go", spec)
    finished = asyncio.ensure_future(talk.wait_for_turn())
    kills = 0
    while not finished.done():
        with worker_process(environment, harness.folder / "w.log") as worker:
            before = await talk.log.end()
            await _wait_for_progress(talk, before + 8, finished)
            worker.kill()
            kills += 1
    state = await finished

    assert kills > 2
    assert state.status == "finished"
    log = await entries(talk)
    assert event_kinds(log).count("ActionEvent") == event_kinds(log).count("ObservationEvent") == 12
    assert len([e for e in log if isinstance(e.event, MessageEvent)]) == 2


async def _wait_for_progress(
    talk: Conversation, end: int, finished: "asyncio.Future[State]"
) -> None:
    async with asyncio.timeout(60):
        while await talk.log.end() < end and not finished.done():
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_a_conversation_outlives_its_workflow(
    harness: ConversationHarness, environment: Environment
) -> None:
    """Whatever ended the workflow, the next message opens the conversation from its log."""
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 60})),
        text_answer("Lost it."),
        text_answer("hello again"),
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge 5", spec)
        await wait_until(lambda: bool(notes(harness, talk, "charged")))
        await talk.handle.terminate("an operator's mistake")
        worker.kill()
        with worker_process(environment, harness.folder / "two.log"):
            await talk.send("are you there?", message_id="m")
            async with asyncio.timeout(60):
                state = await talk.wait_for_turn("m")

    assert notes(harness, talk, "charged") == ["5"]
    log = [entry.event for entry in await entries(talk)]
    [answer] = [event for event in log if isinstance(event, AgentErrorEvent | ObservationEvent)]
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "outcome_unknown"
    assert state.status == "finished"


@pytest.mark.long
def test_a_worker_that_is_asked_to_stop_ends_by_itself(
    environment: Environment, harness: ConversationHarness
) -> None:
    with worker_process(environment, harness.folder / "one.log") as worker:
        _polls(worker)
        assert worker.stop() == 0


def _polls(worker: WorkerProcess) -> None:
    while "polls" not in worker.log.read_text():
        assert worker.process.poll() is None, worker.log.read_text()
