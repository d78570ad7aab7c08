"""Today's code replays every history on file, and a change that would break one is seen."""

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from perdure.temporal.converter import CONVERTER
from perdure.workflows.batch.workflow import Batch
from perdure.workflows.conversation import Conversation
from perdure.workflows.discussion.workflow import Discussion
from perdure.workflows.sandbox import WorkflowSandbox
from perdure.workflows.sessions import Sessions
from tests.record_histories import SHAPES

HISTORIES = sorted((Path(__file__).parents[1] / "histories").glob("*.json"))


def replayer() -> Replayer:
    """In no hurry, unlike a worker: a busy machine says nothing about a history."""
    return Replayer(
        workflows=[Conversation, Batch, Discussion, Sessions],
        workflow_runner=SandboxedWorkflowRunner(restrictions=WorkflowSandbox().restrictions),
        data_converter=CONVERTER,
        debug_mode=True,
    )


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_past_conversation_replays(path: Path) -> None:
    await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, path.read_text()))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_run_that_an_earlier_worker_began_for_a_user_replays(path: Path) -> None:
    """Earlier workers gave children ids without a user, whatever the id of their parent."""
    kind = "batch" if "batch" in path.stem else "conv"
    history = WorkflowHistory.from_json(f"{kind}-anna:{path.stem}", path.read_text())
    await replayer().replay_workflow(history)


def test_there_is_a_history_of_every_shape() -> None:
    assert {path.stem for path in HISTORIES} >= set(SHAPES)


async def test_a_history_that_the_code_would_not_make_is_refused() -> None:
    path = next(path for path in HISTORIES if path.stem == "a-turn-with-tools")
    history = json.loads(path.read_text())
    for event in history["events"]:
        scheduled = event.get("activityTaskScheduledEventAttributes")
        if scheduled and scheduled["activityType"]["name"] == "tool.call":
            scheduled["activityType"]["name"] = "llm.chat"
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(WorkflowHistory.from_json("changed", json.dumps(history)))


async def test_what_a_version_saved_in_activities_replays_without_the_patch() -> None:
    """The operator chose the build ids of its workers, which so tell no revision."""
    path = next(path for path in HISTORIES if path.stem == "a-turn-with-tools")
    history = json.loads(path.read_text())
    for event in history["events"]:
        if completed := event.get("workflowTaskCompletedEventAttributes"):
            del completed["workerVersion"]
            completed["deploymentVersion"] = {"deploymentName": "main", "buildId": "v1"}
    await replayer().replay_workflow(WorkflowHistory.from_json(path.stem, json.dumps(history)))


def test_a_workflow_that_ends_idle_saves_once_more_than_before_the_patch() -> None:
    """So the older history replays by the patch alone."""
    paths = {path.stem: path for path in HISTORIES}
    before = json.loads(paths["ended-while-waiting-without-messages"].read_text())["events"]
    today = json.loads(paths["ended-while-waiting"].read_text())["events"]
    names = [
        [
            scheduled["activityType"]["name"]
            for event in events
            if (scheduled := event.get("activityTaskScheduledEventAttributes"))
        ]
        for events in (before, today)
    ]
    assert names[1] == [*names[0], "conversation.save"]
