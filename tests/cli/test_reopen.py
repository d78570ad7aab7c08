"""`perdure reopen`, also after Temporal's database was really lost."""

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from activities.world import World
from client.client import Client
from client.connect import connect
from client.errors import Unreachable
from client.ids import new_conversation_id
from embedded.process import ChildProcess
from embedded.temporal import TemporalServer
from models.models import Models
from storage.keys import conversation_prefix, event_key
from storage.s3 import S3Store
from tests.cli.command import Perdure, calls, scripted
from tests.house import House
from tests.left_behind import OUTCOMES, go_on, is_fenced, left_behind, let_go_on
from tests.workers import worker_process
from tests.workflows.watching import seen


@pytest.mark.long
async def test_a_conversation_gets_a_workflow_again_but_not_two(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script(calls("terminal", command="echo one"), {"content": "Done."})
    ran = await perdure("run", "Go.", "--confirm", "always", *scripted(path), "-ojson")
    name = ran.json["result"]["conversation_id"]
    client = await connect(perdure.env["TEMPORAL_ADDRESS"])
    await client.get_workflow_handle(f"conv-{name}").terminate("as if it were lost")
    reopened = await perdure("reopen", name, "-ojson")
    assert (reopened.code, reopened.err) == (0, "1 reopened\n")
    told = {"conversation_id": name, "outcome": "reopened", "reason": None}
    assert reopened.json == [{**told, "status": "waiting_for_confirmation"}]
    again = await perdure("reopen", name, name)
    assert (again.code, again.err) == (0, "1 running already\n")
    assert again.out == f"{name}  running already  waiting_for_confirmation\n"


@pytest.mark.long
async def test_what_cannot_be_reopened_is_said(configured: Perdure, store: S3Store) -> None:
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
    [one] = damaged.lines
    assert (one["conversation_id"], one["outcome"], one["status"]) == (name, "damaged", None)
    assert "The object of seq 0 is damaged" in one["reason"]


async def with_an_empty_database(server: TemporalServer, folder: Path) -> ChildProcess:
    """Kill the server, delete all that it knew, and start another one at its address."""
    command = Path(f"/proc/{server.pid}/cmdline").read_text().split("\0")[:-1]
    os.kill(server.pid, signal.SIGKILL)
    await server.process.wait()
    for path in folder.glob("temporal.sqlite*"):
        path.unlink()
    process = await ChildProcess.start("temporal", command, folder / "again.log")
    await process.until(lambda: answers(server.address))
    return process


async def answers(address: str) -> bool:
    try:
        await connect(address)
    except Unreachable:
        return False
    return True


async def house_of(there: Perdure, store: S3Store, folder: Path) -> House:
    """Who looks on."""
    client = Client(
        await connect(there.env["TEMPORAL_ADDRESS"]),
        store,
        user_id=there.env["PERDURE_USER"],
        task_queue=there.env["PERDURE_TASK_QUEUE"],
    )
    return House(client, World(store, Models(), folder / "workspaces"), folder)


@pytest.mark.long
async def test_nothing_is_lost_with_the_database_of_temporal(
    configured: Perdure, store: S3Store, tmp_path: Path
) -> None:
    """And a worker that slept through it cannot write into any log."""
    server = await TemporalServer.start(tmp_path / "temporal", ui=False)
    place = configured.where(
        TEMPORAL_ADDRESS=server.address,
        PERDURE_USER=f"user-{uuid.uuid4()}",
        PERDURE_DATA=f"{tmp_path}",
    )
    house = await house_of(place, store, tmp_path)
    with worker_process(place.env, tmp_path / "zombie.log") as zombie:
        old = await left_behind(house)
        zombie.freeze()
        again = await with_an_empty_database(server, tmp_path / "temporal")
        before = await old.logs()
        await let_go_on(old)
        house = await house_of(place, store, tmp_path)
        there = old.in_the_hands_of(house.client)
        with worker_process(place.env, tmp_path / "worker.log"):
            told = await place("reopen", "--all", "-ojsonl")
            assert told.code == 0, told
            outcomes = {one["conversation_id"]: one["outcome"] for one in told.lines}
            assert outcomes == {getattr(there, name).id: OUTCOMES[name] for name in OUTCOMES}
            await go_on(house, there, before)
            after = await there.logs()
            zombie.thaw()
            for one in (there.charging, there.child):
                await seen(lambda one=one: is_fenced(zombie, one))  # type: ignore[misc]
            assert await there.logs() == after
    await again.stop()
