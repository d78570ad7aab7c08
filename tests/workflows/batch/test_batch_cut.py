"""A batch decides the same however its events are cut into workflow tasks."""

import time
from typing import Any

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, _workflow_instance

from perdure.workflows.batch.workflow import Batch
from perdure.workflows.sandbox import WorkflowSandbox
from tests.harness import ConversationHarness
from tests.workflows.batches import FakeModel, make_sums, spec, start_batch, with_model

CUTS: list[int] = []
"""How many had ended, at each cut."""

whole = _workflow_instance._WorkflowInstanceImpl.activate


def cut(instance: Any, activation: WorkflowActivation) -> WorkflowActivationCompletion:
    """Return what the jobs led to, in two activations.

    Temporal does so now and then: a query brings the newest events along, before the workflow task
    that they belong to; when its history is gone through again, they come together.
    """
    jobs = list(activation.jobs)
    if instance.get_info().workflow_type == "Batch":
        time.sleep(0.3)  # so that several end meanwhile
    ends = [
        at for at, job in enumerate(jobs, 1) if job.HasField("resolve_child_workflow_execution")
    ]
    if len(ends) < 3:
        return whole(instance, activation)
    CUTS.append(len(ends))
    first, then = WorkflowActivation(), WorkflowActivation()
    for piece, of_it in ((first, jobs[: ends[1]]), (then, jobs[ends[1] :])):
        piece.CopyFrom(activation)
        del piece.jobs[:]
        piece.jobs.extend(of_it)
    done = whole(instance, first)
    done.successful.commands.extend(whole(instance, then).successful.commands)
    return done


@pytest.mark.long
async def test_a_batch_decides_the_same_however_its_events_are_cut(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = FakeModel(lambda question: str(eval(question)))
    there, batch = with_model(harness, oracle), spec(concurrency=16)
    with monkeypatch.context() as cutting:
        cutting.setattr(_workflow_instance._WorkflowInstanceImpl, "activate", cut)
        async with there.worker():
            handle = await start_batch(there, batch, make_sums(90))
            progress = await handle.result()
        history: WorkflowHistory = await handle.fetch_history()

    assert CUTS
    assert progress.scored == 90
    replayer = Replayer(
        workflows=[Batch], workflow_runner=WorkflowSandbox(), data_converter=pydantic_data_converter
    )
    await replayer.replay_workflow(history)
