"""A new version of the code comes into force while conversations run."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentInfo, WorkerDeploymentVersion
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflow.v1 import (
    PostResetOperation,
    VersioningOverride,
    WorkflowExecutionOptions,
)
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, Worker
from temporalio.workflow import NondeterminismError

import perdure.operations.deploy as deployment
from perdure.client.conversation import Conversation as Talk
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Invalid, TimedOut
from perdure.events.messages import MessageEvent
from perdure.operations.deploy import deploy, list_versions
from perdure.operations.worker.process import workspace_queue
from perdure.temporal.connect import connect
from perdure.temporal.converter import CONVERTER
from perdure.worker import build_worker, build_workspace_worker
from perdure.workflows.ask import AskWorkflow
from perdure.workflows.conversation import Conversation
from tests.cli.command import Perdure
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.new_code import NewerConversation
from tests.workflows.troubles import TROUBLE_TIMEOUT, environment
from tests.workflows.watching import events, notes, observations, wait_until, workspace

DEADLOCK = "[TMPRL1101]"
"""The SDK's code for a task that held its thread for two seconds."""

WAIT = ("meet", {"name": "here", "other": "there"})


def at_home(harness: ConversationHarness) -> ConversationHarness:
    """The same harness, whose machine has the files."""
    disk = harness.resources.workspaces
    return replace(
        harness,
        resources=replace(harness.resources, home=workspace_queue(disk, harness.client.task_queue)),
    )


@contextlib.asynccontextmanager
async def version(
    harness: ConversationHarness, build_id: str, code: type[Conversation] = Conversation
) -> AsyncIterator[None]:
    """A worker of this version of the code. Each has a connection, as in a process of its own."""
    address = harness.client.temporal.service_client.config.target_host
    ours, other = await connect(address), await connect(address)
    made = build_worker(
        other, harness.client.task_queue, harness.resources, build_id=build_id
    ).config()
    made["client"] = ours
    made["workflows"] = [code, AskWorkflow]
    async with Worker(**made):
        yield


async def runs(talk: Talk) -> list[WorkflowHistory]:
    """The histories of all runs of its workflow, the first one first."""
    temporal = talk.workflow.temporal
    description = await talk.workflow.describe()
    assert description is not None
    run = description.workflow_execution_info.first_run_id
    histories = []
    while run:
        handle = temporal.get_workflow_handle(talk.workflow_id, run_id=run)
        histories.append(await handle.fetch_history())
        last = histories[-1].events[-1]
        run = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return histories


def builds(history: WorkflowHistory) -> set[str]:
    """The versions that have taken part in a run."""
    return {
        event.workflow_task_completed_event_attributes.deployment_version.build_id
        for event in history.events
        if event.HasField("workflow_task_completed_event_attributes")
    }


async def under(talk: Talk) -> list[str]:
    """The version of each of its runs; none has had two, and no task has failed.

    A machine that is busy with other tests may hold a task for two seconds, and a signal may come
    in the moment in which a run ends: the task is tried again.
    """
    histories = await runs(talk)
    failures = [
        event.workflow_task_failed_event_attributes.failure.message
        for history in histories
        for event in history.events
        if event.HasField("workflow_task_failed_event_attributes")
    ]
    known = (DEADLOCK, "UnhandledCommand")
    assert [it for it in failures if not any(each in it for each in known)] == []
    return [build for history in histories for [build] in [builds(history)]]


async def users(talk: Talk) -> list[str | None]:
    messages = await events(talk, MessageEvent)
    return [item.message_id for item in messages if item.source == "user"]


@pytest.mark.long
async def test_conversations_run_through_a_deploy(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    harness = at_home(harness)
    temporal, queue = harness.client.temporal, harness.client.task_queue
    perdure = Perdure(environment(harness, temporal_server))
    deployed = asyncio.Event()
    async with (
        build_workspace_worker(temporal, harness.resources),
        contextlib.AsyncExitStack() as old,
    ):
        await old.enter_async_context(version(harness, "1"))
        await deploy(temporal, queue, "1", max_wait=TROUBLE_TIMEOUT)
        talkative = harness.spec(*[text_answer("yes")] * 500)
        at_rest = await harness.client.start("hello", talkative, message_id="m")
        charging = tool_call_answer(("charge", {"amount": 1, "seconds": 0}))
        spec = harness.spec(charging, tool_call_answer(WAIT), text_answer("!"))
        busy = await harness.client.start("wait", spec, message_id="m")
        # The other one gets the same answers, and cannot delegate: so it is that one which waits.
        spec = harness.spec(
            tool_call_answer(("delegate", {"task": "wait"})),
            tool_call_answer(WAIT),
            text_answer("42"),
            tools=("delegate", "tests.example_tools:TOOLS"),
        )
        boss = await harness.client.start("have it done", spec, message_id="m")
        await at_rest.wait_for_turn()
        for talk in (busy, boss):
            await wait_until((workspace(harness, talk) / "here").exists)
        async with version(harness, "2", NewerConversation):
            talking = asyncio.create_task(say_until(deployed, at_rest))
            await deploy(temporal, queue, "2", max_wait=TROUBLE_TIMEOUT)
            deployed.set()
            report = await perdure("deploy", "2", "-o", "json")
            listed = {load["build_id"]: load["status"] for load in json.loads(report.out)}
            assert (report.code, listed["2"]) == (0, "current")
            fresh = await harness.client.start(
                "hello", harness.spec(text_answer("hi")), message_id="m"
            )
            for talk in (busy, boss):
                (workspace(harness, talk) / "there").touch()
            for talk in (busy, boss, fresh):
                assert (await talk.wait_for_turn()).status == "finished"
            sent = await talking
            await old.aclose()
            await at_rest.submit("still there?", "last")
            assert (await at_rest.wait_for_turn("last")).status == "finished"
    for talk in (at_rest, busy, boss):
        assert await under(talk) == ["1", "2"]
    assert await under(fresh) == ["2"]
    assert await users(at_rest) == ["m", *sent, "last"]
    for talk in (busy, boss, fresh):
        assert await users(talk) == ["m"]
    assert any("42" in text for text in await observations(boss))
    assert notes(harness, busy, "charged") == ["1"]


async def say_until(deployed: asyncio.Event, talk: Talk) -> list[str]:
    """Say something and wait for the answer, again and again; and once more at the end."""
    sent: list[str] = []
    last = False
    while not last:
        last = deployed.is_set()
        sent.append(f"m{len(sent)}")
        if len(sent) % 2:
            await talk.submit("and now?", sent[-1])
        else:
            await talk.send("and now?", message_id=sent[-1])
        await talk.wait_for_turn(sent[-1])
    return sent


@pytest.mark.long
async def test_without_versions_the_new_code_could_not_go_on_with_old_histories(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("hello", harness.spec(text_answer("hi")))
        await talk.wait_for_turn()
    [history] = await runs(talk)
    for code in (Conversation, NewerConversation):
        replayer = Replayer(workflows=[code], data_converter=CONVERTER, debug_mode=True)
        fits = contextlib.nullcontext() if code is Conversation else refused()
        with fits:
            await replayer.replay_workflow(history)


def refused() -> contextlib.AbstractContextManager[object]:
    return pytest.raises(NondeterminismError)


@pytest.mark.long
async def test_a_conversation_whose_version_has_no_worker_is_moved_to_another(
    harness: ConversationHarness,
) -> None:
    temporal, queue = harness.client.temporal, harness.client.task_queue
    async with version(harness, "1"):
        await deploy(temporal, queue, "1", max_wait=TROUBLE_TIMEOUT)
        talk = await harness.client.start(
            "hello", harness.spec(text_answer("hi"), text_answer("yes"))
        )
        await talk.wait_for_turn()
    async with version(harness, "2", NewerConversation):
        await deploy(temporal, queue, "2", max_wait=TROUBLE_TIMEOUT)
        await talk.send("are you there?", message_id="m")
        await move(talk, "2")
        assert (await talk.wait_for_turn("m")).status == "finished"
    assert len(await users(talk)) == 2


@pytest.mark.long
async def test_a_version_saves_in_local_activities_and_its_histories_say_so(
    harness: ConversationHarness,
) -> None:
    """Its build id is the operator's choice, and tells no revision of perdure."""
    async with version(harness, "1"):
        await deploy(
            harness.client.temporal, harness.client.task_queue, "1", max_wait=TROUBLE_TIMEOUT
        )
        talk = await harness.client.start("hello", harness.spec(text_answer("hi")))
        await talk.wait_for_turn()
        async with asyncio.timeout(60):
            while (markers := markers_of(*await runs(talk))) == []:
                await asyncio.sleep(0.05)
    assert markers == ["core_patch", "core_local_activity"]
    replayer = Replayer(workflows=[Conversation], data_converter=CONVERTER, debug_mode=True)
    await replayer.replay_workflow(*await runs(talk))


def markers_of(history: WorkflowHistory) -> list[str]:
    return [
        event.marker_recorded_event_attributes.marker_name
        for event in history.events
        if event.HasField("marker_recorded_event_attributes")
    ]


async def move(talk: Talk, build_id: str) -> None:
    """Reset a workflow as `temporal workflow reset with-workflow-update-options` does."""
    options = WorkflowExecutionOptions(
        versioning_override=VersioningOverride(
            one_time=VersioningOverride.OneTimeOverride(
                target_deployment_version=WorkerDeploymentVersion(
                    deployment_name=talk.workflow.task_queue, build_id=build_id
                )
            )
        )
    )
    moved = PostResetOperation.UpdateWorkflowOptions(workflow_execution_options=options)
    moved.update_mask.paths.append("versioning_override")
    await talk.workflow.temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=talk.workflow.temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=talk.workflow_id),
            reason="its version is gone",
            workflow_task_finish_event_id=4,
            request_id="1",
            reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE,
            post_reset_operations=[PostResetOperation(update_workflow_options=moved)],
        )
    )


@pytest.mark.long
async def test_a_version_is_ramped_and_a_version_without_workers_is_refused(
    harness: ConversationHarness,
) -> None:
    temporal, queue = harness.client.temporal, harness.client.task_queue
    assert await list_versions(temporal, queue) == []
    async with version(harness, "1"), version(harness, "2", NewerConversation):
        await deploy(temporal, queue, "1", max_wait=TROUBLE_TIMEOUT)
        await deploy(temporal, queue, "2", percent=25, max_wait=TROUBLE_TIMEOUT)
        with pytest.raises(Invalid, match="No worker of the version '3' takes work"):
            await deploy(temporal, queue, "3", max_wait=0)
        known = {item.build_id: item for item in await list_versions(temporal, queue)}
        assert {name: item.status for name, item in known.items()} == {
            "1": "current",
            "2": "ramping",
        }
        assert (known["1"].percent, known["2"].percent) == (None, 25)
        assert all(len(item.workers) == 1 for item in known.values())


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
async def test_queues_are_described_if_the_deployment_does_not_list_them(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """The deployment may have lost its list of queues, or not keep one."""
    temporal, queue = harness.client.temporal, harness.client.task_queue
    ask = deployment._describe_deployment

    async def spreading(*which: Any) -> WorkerDeploymentInfo:
        info = await ask(*which)
        info.routing_config_update_state = deployment.PROPAGATING
        if not known:
            info.routing_config.ramping_version_percentage = 26
        return info

    monkeypatch.setattr("perdure.operations.deploy.PROPAGATION_TIMEOUT", 0.5)
    async with version(harness, "1"), version(harness, "2"):
        await deploy(temporal, queue, "1", max_wait=TROUBLE_TIMEOUT)
        monkeypatch.setattr("perdure.operations.deploy._describe_deployment", spreading)
        if known:
            await deploy(temporal, queue, "2", percent=25, max_wait=TROUBLE_TIMEOUT)
        else:
            with pytest.raises(TimedOut, match="not yet in force everywhere after 3 s"):
                await deploy(temporal, queue, "2", percent=25, max_wait=3)
