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

import client.deploy
from client.connect import connect
from client.conversation import Conversation as Talk
from client.converter import CONVERTER
from client.deploy import deploy, versions
from client.errors import Invalid, TimedOut
from embedded.temporal import TemporalServer
from events.messages import MessageEvent
from tests.cli.command import Perdure
from tests.house import House, calls, says
from tests.workflows.new_code import Newer
from tests.workflows.troubles import LONGEST, environment
from tests.workflows.watching import events, notes, observed, seen, workspace
from worker import build_worker, build_worker_at_home, home_of
from workflows.ask import Asking
from workflows.conversation import Conversation

WAIT = ("meet", {"name": "here", "other": "there"})


def at_home(house: House) -> House:
    """The same house, whose machine has the files."""
    disk = house.world.workspaces
    return replace(house, world=replace(house.world, home=home_of(disk, house.client.task_queue)))


@contextlib.asynccontextmanager
async def version(
    house: House, build_id: str, code: type[Conversation] = Conversation
) -> AsyncIterator[None]:
    """A worker of this version of the code. Each has a connection, as in a process of its own."""
    address = house.client.temporal.service_client.config.target_host
    ours, other = await connect(address), await connect(address)
    made = build_worker(other, house.client.task_queue, house.world, build_id=build_id).config()
    made["client"] = ours
    made["workflows"] = [code, Asking]
    async with Worker(**made):
        yield


async def runs(talk: Talk) -> list[WorkflowHistory]:
    """The histories of all runs of its workflow, the first one first."""
    temporal = talk.remote.temporal
    told = await talk.remote.described()
    assert told is not None
    run = told.workflow_execution_info.first_run_id
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
    """The version of each of its runs; none has had two, and no task has failed."""
    histories = await runs(talk)
    kinds = {event.WhichOneof("attributes") for one in histories for event in one.events}
    assert "workflow_task_failed_event_attributes" not in kinds
    return [build for one in histories for [build] in [builds(one)]]


async def users(talk: Talk) -> list[str | None]:
    said = await events(talk, MessageEvent)
    return [one.message_id for one in said if one.source == "user"]


@pytest.mark.long
async def test_conversations_run_through_a_deploy(
    house: House, temporal_server: TemporalServer
) -> None:
    house = at_home(house)
    temporal, queue = house.client.temporal, house.client.task_queue
    perdure = Perdure(environment(house, temporal_server))
    deployed = asyncio.Event()
    async with build_worker_at_home(temporal, house.world), contextlib.AsyncExitStack() as old:
        await old.enter_async_context(version(house, "1"))
        await deploy(temporal, queue, "1", wait=LONGEST)
        talkative = house.spec(*[says("yes")] * 500)
        at_rest = await house.client.start("hello", talkative, message_id="m")
        charging = calls(("charge", {"amount": 1, "seconds": 0}))
        spec = house.spec(charging, calls(WAIT), says("!"))
        busy = await house.client.start("wait", spec, message_id="m")
        # The other one gets the same answers, and cannot delegate: so it is that one which waits.
        spec = house.spec(
            calls(("delegate", {"task": "wait"})),
            calls(WAIT),
            says("42"),
            tools=("delegate", "tests.tools_at_hand:TOOLS"),
        )
        boss = await house.client.start("have it done", spec, message_id="m")
        await at_rest.finished()
        for talk in (busy, boss):
            await seen((workspace(house, talk) / "here").exists)
        async with version(house, "2", Newer):
            talking = asyncio.create_task(say_until(deployed, at_rest))
            await deploy(temporal, queue, "2", wait=LONGEST)
            deployed.set()
            told = await perdure("deploy", "2", "-o", "json")
            listed = {one["build_id"]: one["status"] for one in json.loads(told.out)}
            assert (told.code, listed["2"]) == (0, "current")
            fresh = await house.client.start("hello", house.spec(says("hi")), message_id="m")
            for talk in (busy, boss):
                (workspace(house, talk) / "there").touch()
            for talk in (busy, boss, fresh):
                assert (await talk.finished()).status == "finished"
            sent = await talking
            await old.aclose()
            await at_rest.submit("still there?", "last")
            assert (await at_rest.finished("last")).status == "finished"
    for talk in (at_rest, busy, boss):
        assert await under(talk) == ["1", "2"]
    assert await under(fresh) == ["2"]
    assert await users(at_rest) == ["m", *sent, "last"]
    for talk in (busy, boss, fresh):
        assert await users(talk) == ["m"]
    assert any("42" in told for told in await observed(boss))
    assert notes(house, busy, "charged") == ["1"]


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
        await talk.finished(sent[-1])
    return sent


async def test_without_versions_the_new_code_could_not_go_on_with_old_histories(
    house: House,
) -> None:
    async with house.worker():
        talk = await house.client.start("hello", house.spec(says("hi")))
        await talk.finished()
    [history] = await runs(talk)
    for code in (Conversation, Newer):
        replayer = Replayer(workflows=[code], data_converter=CONVERTER, debug_mode=True)
        fits = contextlib.nullcontext() if code is Conversation else refused()
        with fits:
            await replayer.replay_workflow(history)


def refused() -> contextlib.AbstractContextManager[object]:
    return pytest.raises(NondeterminismError)


@pytest.mark.long
async def test_a_conversation_whose_version_has_no_worker_is_moved_to_another(
    house: House,
) -> None:
    temporal, queue = house.client.temporal, house.client.task_queue
    async with version(house, "1"):
        await deploy(temporal, queue, "1", wait=LONGEST)
        talk = await house.client.start("hello", house.spec(says("hi"), says("yes")))
        await talk.finished()
    async with version(house, "2", Newer):
        await deploy(temporal, queue, "2", wait=LONGEST)
        await talk.send("are you there?", message_id="m")
        await move(talk, "2")
        assert (await talk.finished("m")).status == "finished"
    assert len(await users(talk)) == 2


async def move(talk: Talk, build_id: str) -> None:
    """As `temporal workflow reset with-workflow-update-options` does."""
    options = WorkflowExecutionOptions(
        versioning_override=VersioningOverride(
            one_time=VersioningOverride.OneTimeOverride(
                target_deployment_version=WorkerDeploymentVersion(
                    deployment_name=talk.remote.task_queue, build_id=build_id
                )
            )
        )
    )
    moved = PostResetOperation.UpdateWorkflowOptions(workflow_execution_options=options)
    moved.update_mask.paths.append("versioning_override")
    await talk.remote.temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=talk.remote.temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=talk.workflow_id),
            reason="its version is gone",
            workflow_task_finish_event_id=4,
            request_id="1",
            reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE,
            post_reset_operations=[PostResetOperation(update_workflow_options=moved)],
        )
    )


async def test_a_version_is_tried_with_some_and_one_without_workers_is_refused(
    house: House,
) -> None:
    temporal, queue = house.client.temporal, house.client.task_queue
    assert await versions(temporal, queue) == []
    async with version(house, "1"), version(house, "2", Newer):
        await deploy(temporal, queue, "1", wait=LONGEST)
        await deploy(temporal, queue, "2", percent=25, wait=LONGEST)
        with pytest.raises(Invalid, match="No worker of the version '3' takes work"):
            await deploy(temporal, queue, "3", wait=0)
        known = {one.build_id: one for one in await versions(temporal, queue)}
        assert {name: one.status for name, one in known.items()} == {
            "1": "current",
            "2": "ramping",
        }
        assert (known["1"].percent, known["2"].percent) == (None, 25)
        assert all(len(one.workers) == 1 for one in known.values())


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
async def test_queues_are_asked_themselves_where_temporal_does_not_tell_that_they_know(
    house: House, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """As where it has lost that news, and as where they do not go by it."""
    temporal, queue = house.client.temporal, house.client.task_queue
    ask = client.deploy._deployment

    async def spreading(*which: Any) -> WorkerDeploymentInfo:
        info = await ask(*which)
        info.routing_config_update_state = client.deploy.SPREADING
        if not known:
            info.routing_config.ramping_version_percentage = 26
        return info

    monkeypatch.setattr("client.deploy.LOST", 0.5)
    async with version(house, "1"), version(house, "2"):
        await deploy(temporal, queue, "1", wait=LONGEST)
        monkeypatch.setattr("client.deploy._deployment", spreading)
        if known:
            await deploy(temporal, queue, "2", percent=25, wait=LONGEST)
        else:
            with pytest.raises(TimedOut, match="not yet in force everywhere after 3 s"):
                await deploy(temporal, queue, "2", percent=25, wait=3)
