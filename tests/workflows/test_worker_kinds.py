"""Workers that only run workflows, only ask models or only run tools share a conversation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from temporalio.worker import Worker, WorkerTuner

from perdure.activities.support.step_queues import StepQueues
from perdure.client.ask import ask
from perdure.client.diagnosis.diagnose import diagnose_workflow
from perdure.evaluation.sample import build_sample
from perdure.operations.watchdog import Watchdog
from perdure.operations.worker.options import WorkerKind, WorkerOptions
from perdure.operations.worker.slots import ProcessSlots
from perdure.settings.settings import Settings
from perdure.temporal.worker_load import WorkerLoad
from perdure.worker import build_all_workers
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.batch.test_grading_queues import (
    GRADED,
    answer,
    conversations,
    judge_requests,
    queues_of,
    run,
)
from tests.workflows.batch.test_grading_queues import replays as replay_batch
from tests.workflows.batches import FakeModel, make_sums, start_batch, with_model
from tests.workflows.batches import spec as batch_spec
from tests.workflows.test_model_queues import ADDING, queues, replays
from tests.workflows.watching import observations

LLM, TOOLS = "-llm", "-tools"


def build(
    harness: ConversationHarness, *kinds: WorkerKind, concurrency: int | None = None
) -> list[Worker]:
    """Build the workers of a process of these kinds, as on a machine of its own."""
    queue, temporal = harness.client.task_queue, harness.client.temporal
    steps = StepQueues(queue, {}, "model" in kinds, "tools" in kinds)
    home = f"{queue}@{'+'.join(kinds)}"
    folder = harness.folder / home
    world = replace(harness.resources, queues=steps, home=home, workspaces=folder)
    options = WorkerOptions(frozenset(kinds), concurrency=concurrency)
    parts = (temporal, Settings(task_queue=queue), world, Watchdog(harness.client), (), options)
    return build_all_workers(*parts, WorkerLoad())


@contextlib.asynccontextmanager
async def running(harness: ConversationHarness, *kinds: WorkerKind) -> AsyncIterator[None]:
    """Run the workers of a process of these kinds while inside."""
    async with contextlib.AsyncExitStack() as workers:
        for worker in build(harness, *kinds):
            await workers.enter_async_context(worker)
        yield


@pytest.mark.parametrize(("concurrency", "common", "others"), [(None, 500, 100), (7, 7, 7)])
async def test_the_common_queue_has_more_places(
    harness: ConversationHarness,
    monkeypatch: pytest.MonkeyPatch,
    concurrency: int | None,
    common: int,
    others: int,
) -> None:
    limits, make_tuner = list[int](), ProcessSlots.make_tuner

    def record(slots: ProcessSlots, limit: int) -> WorkerTuner:
        limits.append(limit)
        return make_tuner(slots, limit)

    monkeypatch.setattr(ProcessSlots, "make_tuner", record)
    workers = build(harness, "workflows", "model", "tools", concurrency=concurrency)
    names = [it.task_queue.removeprefix(harness.client.task_queue) for it in workers]
    home = "@workflows+model+tools"
    found = dict(zip(names, limits, strict=True))
    assert found == {"": common, LLM: others, TOOLS: others, home: others}


@pytest.mark.long
async def test_each_step_is_done_by_the_worker_of_its_kind_which_is_known_after_the_first(
    harness: ConversationHarness,
) -> None:
    write = tool_call_answer(("terminal", {"command": "echo here > file"}))
    read = tool_call_answer(("terminal", {"command": "cat file"}))
    tools = ("terminal", "tests.example_tools:TOOLS", "finish")
    spec = harness.spec(ADDING, ADDING, write, read, text_answer("done"), tools=tools)
    async with running(harness, "workflows"), running(harness, "model"), running(harness, "tools"):
        talk = await harness.client.start("go", spec)
        assert (await talk.wait_for_turn()).status == "finished"
        assert (await observations(talk))[-1].strip().startswith("here")
        home = "@tools"
        assert await queues(talk, "llm.chat") == ["", *[LLM] * 5]
        assert await queues(talk, "tool.call") == ["", TOOLS, TOOLS, TOOLS, home]
        assert (await ask(harness.client, talk.id, "And?")).text.startswith("ANSWER")
    await replays(talk)


@pytest.mark.long
async def test_a_worker_of_every_kind_takes_over_what_no_worker_of_one_kind_is_there_for(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(ADDING, text_answer("done"), text_answer("again"), heartbeat_timeout=1)
    async with running(harness, "workflows"), running(harness, "model"), running(harness, "tools"):
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()
    async with running(harness, "model", "tools", "workflows"):
        await talk.send("more")
        assert (await talk.wait_for_turn()).status == "finished"
        assert (await queues(talk, "llm.chat"))[-1] == LLM  # a worker of every kind polls it too
    await replays(talk)


@pytest.mark.long
async def test_a_sample_is_set_up_and_scored_by_tools_and_graded_by_models(
    harness: ConversationHarness,
) -> None:
    harness = with_model(harness, FakeModel(answer))
    setup = build_sample({"id": "s", "input": "0 + 1", "target": 1, "setup": "echo here > file"})
    command = {"kind": "command", "command": "grep here file"}
    batch = batch_spec(scorers=[command, GRADED])
    async with running(harness, "workflows"), running(harness, "model"), running(harness, "tools"):
        await run(harness, batch, [setup])
        [handle] = await conversations(harness, batch)
        places = {
            kind: [name.removeprefix(harness.client.task_queue) for name in names]
            for kind in ("sample.set_up", "sample.finish")
            if (names := await queues_of(handle, kind))
        }
        assert places["sample.set_up"] == ["", TOOLS]
        assert places["sample.finish"] == ["@tools", "", LLM, "@tools"]
        again = await start_batch(harness, batch, [setup], mode="rescore", fresh=False)
        assert (await again.result()).scored == 1
        await replay_batch(handle)
        await replay_batch(again)
    assert judge_requests(harness) == 1


@pytest.mark.long
async def test_a_workspace_that_no_tool_has_touched_is_scored_by_tools(
    harness: ConversationHarness,
) -> None:
    harness = with_model(harness, FakeModel(answer))
    batch = batch_spec(scorers=[{"kind": "command", "command": "true"}, GRADED])
    async with running(harness, "workflows"), running(harness, "model"), running(harness, "tools"):
        await run(harness, batch, make_sums(1))
        [handle] = await conversations(harness, batch)
        names = await queues_of(handle, "sample.finish")
        places = [name.removeprefix(harness.client.task_queue) for name in names]
        assert places == ["", LLM, "", TOOLS]
        await replay_batch(handle)


@pytest.mark.long
async def test_that_no_worker_asks_models_is_told_until_one_does(
    harness: ConversationHarness,
) -> None:
    async with running(harness, "workflows"):
        talk = await harness.client.start("go", harness.spec(text_answer("done")))
        async with asyncio.timeout(40):
            while (trouble := await diagnose_workflow(talk.workflow)) is None:
                await asyncio.sleep(0.5)
        assert f"none runs on the queue '{harness.client.task_queue}-llm'" in trouble.sentence
        assert "`perdure worker --only model` starts one" in trouble.sentence
        async with running(harness, "model"):
            assert (await talk.wait_for_turn()).status == "finished"
