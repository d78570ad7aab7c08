"""`perdure reopen`, also after Temporal's database was really lost."""

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.ids import new_conversation_id
from perdure.embedded.process import ChildProcess
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Unreachable
from perdure.models.router import ModelRouter
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.s3 import S3Store
from perdure.temporal.connect import connect
from tests.cli.command import Perdure, model_options, tool_call_answer
from tests.harness import ConversationHarness
from tests.interrupted_conversations import (
    OUTCOMES,
    is_fenced,
    resume_all,
    rewrite_scripts,
    start_interrupted,
)
from tests.workers import worker_process
from tests.workflows.watching import wait_until


@pytest.mark.long
async def test_a_conversation_gets_a_workflow_again_but_not_two(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script(tool_call_answer("terminal", command="echo one"), {"content": "Done."})
    ran = await perdure("run", "Go.", "--confirm", "always", *model_options(path), "-ojson")
    name = ran.json["conversation_id"]
    client = await connect(perdure.env["TEMPORAL_ADDRESS"])
    await client.get_workflow_handle(f"conv-{name}").terminate("as if it were lost")
    reopened = await perdure("reopen", name, "-ojson")
    assert (reopened.code, reopened.err) == (0, "1 reopened\n")
    result = {"conversation_id": name, "outcome": "reopened", "reason": None}
    assert reopened.json == [{**result, "status": "waiting_for_confirmation"}]
    again = await perdure("reopen", name, name)
    assert (again.code, again.err) == (0, "1 running already\n")
    assert again.out == f"{name}  running already  waiting_for_confirmation\n"


@pytest.mark.long
async def test_conversations_that_cannot_be_reopened_are_reported(
    configured: Perdure, store: S3Store
) -> None:
    name, user = new_conversation_id(), f"user-{uuid.uuid4()}"
    await store.create(conversation_prefix(user, name) + event_key(name, 0), b"{")
    both, unknown, damaged = await asyncio.gather(
        configured("reopen", name, "--all", "-ojson"),
        configured("reopen", name, "-ojson"),
        configured("reopen", "--all", "--user", user, "-ojsonl"),
    )
    assert (both.code, both.error["code"]) == (2, "invalid")
    assert (unknown.code, unknown.error["code"]) == (3, "not_found")
    assert (damaged.code, damaged.err) == (1, "1 damaged\n")
    [entry] = damaged.lines
    assert (entry["conversation_id"], entry["outcome"], entry["status"]) == (name, "damaged", None)
    assert "The object of seq 0 is damaged" in entry["reason"]


async def restart_with_empty_database(server: TemporalServer, folder: Path) -> ChildProcess:
    """Kill the server, delete its database, and start another one at its address."""
    command = Path(f"/proc/{server.pid}/cmdline").read_text().split("\0")[:-1]
    os.kill(server.pid, signal.SIGKILL)
    await server.process.wait()
    for path in folder.glob("temporal.sqlite*"):
        path.unlink()
    process = await ChildProcess.start("temporal", command, folder / "again.log")
    await process.wait_until(lambda: server_answers(server.address))
    return process


async def server_answers(address: str) -> bool:
    try:
        await connect(address)
    except Unreachable:
        return False
    return True


async def make_harness(perdure: Perdure, store: S3Store, folder: Path) -> ConversationHarness:
    """Make a harness for the conversations of that command."""
    client = Client(
        await connect(perdure.env["TEMPORAL_ADDRESS"]),
        store,
        user_id=perdure.env["PERDURE_USER"],
        task_queue=perdure.env["PERDURE_TASK_QUEUE"],
    )
    return ConversationHarness(
        client, Resources(store, ModelRouter(), folder / "workspaces"), folder
    )


@pytest.mark.long
async def test_nothing_is_lost_with_the_database_of_temporal(
    configured: Perdure, store: S3Store, tmp_path: Path
) -> None:
    """A worker that was suspended meanwhile cannot write into any log."""
    server = await TemporalServer.start(tmp_path / "temporal", ui=False)
    perdure_there = configured.with_env(
        TEMPORAL_ADDRESS=server.address,
        PERDURE_USER=f"user-{uuid.uuid4()}",
        PERDURE_DATA=f"{tmp_path}",
    )
    harness = await make_harness(perdure_there, store, tmp_path)
    with worker_process(perdure_there.env, tmp_path / "zombie.log") as zombie:
        old = await start_interrupted(harness)
        zombie.freeze()
        again = await restart_with_empty_database(server, tmp_path / "temporal")
        before = await old.logs()
        await rewrite_scripts(old)
        harness = await make_harness(perdure_there, store, tmp_path)
        there = old.through_client(harness.client)
        with worker_process(perdure_there.env, tmp_path / "worker.log"):
            result = await perdure_there("reopen", "--all", "-ojsonl")
            assert result.code == 0, result
            outcomes = {line["conversation_id"]: line["outcome"] for line in result.lines}
            assert outcomes == {getattr(there, name).id: OUTCOMES[name] for name in OUTCOMES}
            await resume_all(harness, there, before)
            after = await there.logs()
            zombie.thaw()
            for item in (there.charging, there.child):
                await wait_until(lambda item=item: is_fenced(zombie, item))  # type: ignore[misc]
            assert await there.logs() == after
    await again.stop()
