"""A grading model with a rate limit is asked from its own queue, and once."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHandle
from temporalio.worker import Replayer

from perdure.activities.support.step_queues import StepQueues
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec
from perdure.temporal.converter import CONVERTER
from perdure.temporal.names import conversation_workflow_id
from perdure.workflows.batch.workflow import Batch
from perdure.workflows.conversation import Conversation
from tests.harness import ConversationHarness, model_workers
from tests.workflows.batches import (
    FakeModel,
    make_sums,
    results,
    spec,
    start_batch,
    with_model,
)

GRADED = {"kind": "model_graded", "model": {"name": "judge"}}
COMMAND = {"kind": "command", "command": "true"}


def answer(question: str) -> str:
    return "GRADE: C" if question.startswith("You judge") else "1"


@contextlib.asynccontextmanager
async def working(harness: ConversationHarness) -> AsyncIterator[ConversationHarness]:
    """Workers of a harness in which the judge has a rate limit, which no test comes near."""
    harness = with_model(harness, FakeModel(answer))
    limits = StepQueues(harness.client.task_queue, {"judge": 60_000.0})
    home = f"{harness.client.task_queue}@home"
    harness = replace(harness, resources=replace(harness.resources, queues=limits, home=home))
    async with harness.worker(), model_workers(harness):
        yield harness


def judge_requests(harness: ConversationHarness) -> int:
    assert isinstance(harness.resources.model, FakeModel)
    counts = harness.resources.model.question_counts
    return sum(count for question, count in counts.items() if question.startswith("You judge"))


async def queues_of(handle: WorkflowHandle[Any, Any], kind: str) -> list[str]:
    """Return the queues of the activities of a kind, in order."""
    return [
        event.activity_task_scheduled_event_attributes.task_queue.name
        for event in (await handle.fetch_history()).events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name == kind
    ]


async def conversations(
    harness: ConversationHarness, batch: BatchSpec
) -> list[WorkflowHandle[Any, Any]]:
    found = await results(harness, batch)
    names = [attempt.conversation_id for result in found.values() for attempt in result.attempts]
    return [
        harness.client.temporal.get_workflow_handle(conversation_workflow_id("local", name))
        for name in names
    ]


async def replays(handle: WorkflowHandle[Any, Any]) -> None:
    replayer = Replayer(workflows=[Conversation, Batch], data_converter=CONVERTER, debug_mode=True)
    await replayer.replay_workflow(await handle.fetch_history())


async def run(harness: ConversationHarness, batch: BatchSpec, samples: list[Sample]) -> None:
    progress = await (await start_batch(harness, batch, samples)).result()
    assert progress.scored == len(samples), progress


@pytest.mark.long
async def test_a_reply_is_requested_on_the_queue_of_the_grading_model(
    harness: ConversationHarness,
) -> None:
    async with working(harness) as harness:
        batch = spec(scorers=[GRADED, "exact"])
        await run(harness, batch, make_sums(2))
        for handle in await conversations(harness, batch):
            common, own = await queues_of(handle, "sample.finish")
            assert own == f"{common}%judge"
            await replays(handle)
    assert judge_requests(harness) == 2


@pytest.mark.long
async def test_the_workspace_is_scored_on_its_own_queue_after_the_grades(
    harness: ConversationHarness,
) -> None:
    async with working(harness) as harness:
        batch = spec(scorers=[COMMAND, GRADED])
        await run(harness, batch, make_sums(1))
        [handle] = await conversations(harness, batch)
        queues = await queues_of(handle, "sample.finish")
        assert queues[-2].endswith("%judge")
        assert not queues[-1].endswith("%judge")
        await replays(handle)
        [result] = (await results(harness, batch)).values()
        assert list(result.attempts[-1].scores) == ["command", "model_graded"]
    assert judge_requests(harness) == 1


@pytest.mark.long
async def test_a_rescore_waits_for_the_rate_too(harness: ConversationHarness) -> None:
    async with working(harness) as harness:
        batch = spec(scorers=["exact"])
        await run(harness, batch, make_sums(1))
        graded = spec(batch.name, scorers=[GRADED, COMMAND])
        again = await start_batch(harness, graded, make_sums(1), mode="rescore", fresh=False)
        await again.result()
        queues = await queues_of(again, "sample.rescore")
        assert [queue.endswith("%judge") for queue in queues] == [False, True, False]
        await replays(again)
    assert judge_requests(harness) == 1
