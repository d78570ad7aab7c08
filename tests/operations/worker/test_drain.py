"""A worker that is to end takes no new work, hands on what it has, and is gone within its grace."""

import asyncio
import json
import re
import signal
from contextlib import closing
from http.client import HTTPConnection
from time import monotonic
from typing import Any

import pytest

from perdure.embedded.temporal import TemporalServer
from perdure.events.tools import AgentErrorEvent
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import WorkerProcess, worker_process
from tests.workflows.watching import events, observations, wait_until

Environment = dict[str, str]
TOOLS = ("tests.example_tools:TOOLS", "tests.operations.worker.draining_tools:TOOLS")


@pytest.fixture
def environment(harness: ConversationHarness, temporal_server: TemporalServer) -> Environment:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }


def probe(worker: WorkerProcess, path: str) -> tuple[int, dict[str, Any]]:
    """Return what the worker answers a probe; 0 as long as it answers none."""
    found = re.search(r"answers probes at port (\d+)", worker.log.read_text())
    if found is None:
        return 0, {}
    with closing(HTTPConnection("127.0.0.1", int(found[1]), timeout=20)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


async def wait_for_exit(worker: WorkerProcess) -> int:
    return await asyncio.to_thread(worker.process.wait, 60)


@pytest.mark.long
async def test_steps_that_end_in_time_end_those_that_do_not_are_recorded_and_the_worker_is_gone(
    harness: ConversationHarness, environment: Environment
) -> None:
    def spec(name: str, **arguments: object) -> object:
        return harness.spec(tool_call_answer((name, arguments)), text_answer("so"), tools=TOOLS)

    log = harness.folder / "worker.log"
    with worker_process(environment, log, ["--grace", "12", "--health-port", "0"]) as worker:
        await wait_until(lambda: probe(worker, "/readyz")[0] == 200)
        assert probe(worker, "/readyz") == (200, {"status": "ready", "steps": 0})
        assert probe(worker, "/livez") == (200, {"status": "ok"})
        start = harness.client.start
        brief = await start("go", spec("charge", amount=1, seconds=4))  # type: ignore[arg-type]
        long = await start("go", spec("charge", amount=2, seconds=60))  # type: ignore[arg-type]
        stuck = await start("go", spec("cling"))  # type: ignore[arg-type]
        workspaces = harness.resources.workspaces
        folders = [workspaces / talk.id / "charged" for talk in (brief, long)]
        marks = [*folders, workspaces / stuck.id / "clung"]  # before, a model may be the third step
        await wait_until(lambda: all(mark.exists() for mark in marks))
        await wait_until(lambda: probe(worker, "/readyz")[1]["steps"] == 3)
        began = monotonic()
        worker.process.send_signal(signal.SIGTERM)
        await wait_until(lambda: probe(worker, "/readyz")[0] == 503)
        _, body = probe(worker, "/readyz")
        assert body["status"] == "unready"
        assert "drains" in body["reason"]
        assert probe(worker, "/livez")[0] == 200
        late = await start("go", spec("add", a=1, b=2))  # type: ignore[arg-type]
        assert await wait_for_exit(worker) == 0
        assert monotonic() - began < 12 + 4
        assert not await observations(late)
    assert "has not drained within 12 s" in log.read_text()
    with worker_process(environment, harness.folder / "next.log"):
        for talk in (brief, long, late):
            assert (await talk.wait_for_turn()).status == "finished"
    assert await observations(brief) == ["charged 1"]
    [interrupted] = await events(long, AgentErrorEvent)
    assert interrupted.classification == "interrupted"
    assert "its worker was shut down" in interrupted.error
    assert [folder.read_text() for folder in folders] == ["1\n", "2\n"]


@pytest.mark.long
async def test_a_worker_past_its_memory_ends_its_steps_and_exits_to_be_started_again(
    harness: ConversationHarness, environment: Environment
) -> None:
    spec = harness.spec(
        tool_call_answer(("hoard", {"megabytes": 600})),
        text_answer("so"),
        tools=TOOLS,
        heartbeat_timeout=20,
    )
    log = harness.folder / "worker.log"
    with worker_process(
        environment, log, ["--max-memory", str(500 << 20), "--grace", "40"]
    ) as worker:
        talk = await harness.client.start("go", spec)
        assert await wait_for_exit(worker) == 75
        assert await observations(talk) == ["I have it all."]
    assert "may take 500 MiB" in log.read_text()


@pytest.mark.long
async def test_a_limit_that_every_worker_is_past_is_refused(
    harness: ConversationHarness, environment: Environment
) -> None:
    log = harness.folder / "worker.log"
    with worker_process(environment, log, ["--max-memory", str(10 << 20)]) as worker:
        assert await wait_for_exit(worker) == 2
    assert "before it has done anything, and may take 10 MiB" in log.read_text()
