import asyncio
import re
import sqlite3
import uuid
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.taskqueue.v1 import StickyExecutionAttributes, TaskQueue
from temporalio.api.workflowservice.v1 import (
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
)
from temporalio.client import Client

from perdure.embedded.process import request_status
from perdure.embedded.temporal import DYNAMIC_CONFIG, TemporalServer
from tests.embedded.processes import is_alive

ROOT = Path(__file__).parents[2]

SETTING = re.compile(r"^ *([a-z]+\.\w+):\n +- value: (\w+)", re.MULTILINE)
"""A setting in a file of Temporal's dynamic configuration."""


@pytest.mark.parametrize("file", ["deploy/compose/temporal.yaml", "docs/runbook.md"])
def test_a_server_of_ones_own_is_set_as_the_embedded_one(file: str) -> None:
    embedded = dict(setting.replace('"', "").split("=") for setting in DYNAMIC_CONFIG)
    named = dict(SETTING.findall((ROOT / file).read_text()))
    assert named.pop("matching.useNewMatcher") == "true"  # the default of today
    queues = {name: value for name, value in embedded.items() if not name.startswith("frontend.")}
    assert named == queues


@pytest.mark.long
async def test_a_workflow_is_found_again_after_a_restart(tmp_path: Path) -> None:
    first = await TemporalServer.start(tmp_path, ui=False)
    client = await Client.connect(first.address)
    handle = await client.start_workflow("Anything", id="kept", task_queue="nobody")
    await first.stop()
    assert not is_alive(first.pid)
    second = await TemporalServer.start(tmp_path, ui=False)
    again = await Client.connect(second.address)
    description = await again.get_workflow_handle("kept").describe()
    await second.stop()
    assert description.run_id == handle.first_execution_run_id


@pytest.mark.long
async def test_the_ui_is_served_by_default(tmp_path: Path) -> None:
    server = await TemporalServer.start(tmp_path)
    assert server.ui_url is not None
    status = await request_status("GET", int(server.ui_url.rpartition(":")[2]), "/")
    await server.stop()
    assert status == 200


@pytest.mark.long
async def test_the_ui_is_configured_with_the_codec_server(tmp_path: Path) -> None:
    pages: list[str] = []

    async def codec(page: str) -> str:
        pages.append(page)
        return "http://127.0.0.1:1"

    server = await TemporalServer.start(tmp_path, codec=codec)
    async with httpx.AsyncClient(timeout=60) as browser:
        settings = (await browser.get(f"{server.ui_url}/api/v1/settings")).json()
    await server.stop()
    assert pages == [server.ui_url]
    assert settings["Codec"]["Endpoint"] == server.codec_url == "http://127.0.0.1:1"


@pytest.mark.long
async def test_the_database_uses_a_write_ahead_log(tmp_path: Path) -> None:
    server = await TemporalServer.start(tmp_path, ui=False)
    with sqlite3.connect(f"file:{tmp_path / 'temporal.sqlite'}?mode=ro", uri=True) as database:
        (mode,) = database.execute("pragma journal_mode").fetchone()
    database.close()
    await server.stop()
    assert mode == "wal"


@pytest.mark.long
async def test_two_servers_run_side_by_side(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    other = await TemporalServer.start(tmp_path, ui=False)
    assert other.address != temporal_server.address
    await other.stop()
    assert is_alive(temporal_server.pid)


@pytest.mark.long
async def test_polls_for_cached_workflows_bring_no_workflow_that_begins(
    temporal_server: TemporalServer,
) -> None:
    name = str(uuid.uuid4())
    queue = TaskQueue(name=name, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL)
    cached = TaskQueue(
        name=f"cached {name}", kind=TaskQueueKind.TASK_QUEUE_KIND_STICKY, normal_name=name
    )
    client = await Client.connect(temporal_server.address)
    service = client.workflow_service

    async def poll(queue: TaskQueue) -> PollWorkflowTaskQueueResponse:
        request = PollWorkflowTaskQueueRequest(
            namespace="default", task_queue=queue, identity="worker"
        )
        return await service.poll_workflow_task_queue(request, timeout=timedelta(seconds=30))

    known = await client.start_workflow("Anything", id=f"known {name}", task_queue=name)
    first = await poll(queue)
    sticky = StickyExecutionAttributes(
        worker_task_queue=cached, schedule_to_start_timeout=Duration(seconds=30)
    )
    await service.respond_workflow_task_completed(
        RespondWorkflowTaskCompletedRequest(
            namespace="default", task_token=first.task_token, sticky_attributes=sticky
        )
    )
    for number in range(3):
        await client.start_workflow("Anything", id=f"begins {number} {name}", task_queue=name)
    polls = [asyncio.create_task(poll(cached)) for _ in range(3)]
    # Temporal looks for what waits in the other queue every five seconds.
    await asyncio.sleep(7)
    assert not any(each.done() for each in polls)
    await known.signal("anything")
    done, waiting = await asyncio.wait(polls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert [each.result().workflow_execution.workflow_id for each in done] == [known.id]
    for each in waiting:
        each.cancel()
    assert len(waiting) == 2
