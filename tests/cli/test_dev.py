"""`perdure dev`, and `perdure run` where nothing is set: a stack of one's own on real ports."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Perdure, calls, clean_environment, line_with, scripted


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
async def test_a_stranger_runs_a_task_and_finds_it_again_and_kills_the_worker(
    tmp_path: Path, script: Callable[..., str]
) -> None:
    data = tmp_path / "data"
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(data)})
    path = script(
        calls("think", thought="Hm."), {"content": "First.", "delay": 0.1}, {"content": "Second."}
    )
    ran = await bare("run", "Go.", *scripted(path), "-ojsonl")
    assert (ran.code, ran.lines[-1]["result"]["status"]) == (0, "finished"), ran
    assert "starting one for this command" in ran.err
    assert "http://127.0.0.1:" in ran.err
    assert not (data / "stack.json").exists()
    name = ran.lines[0]["conversation_id"]

    async with bare.started("dev", "--data", str(data), "-ojsonl") as dev:
        stack = json.loads(await line_with(dev.stdout, "pids"))
        assert "AWS_SECRET_ACCESS_KEY" not in str(stack)
        listed, shown, again = await asyncio.gather(
            bare("ls", "-ojson"), bare("show", name, "-ojsonl"), bare("dev", "-ojson")
        )
        assert [one["id"] for one in listed.json] == [name]
        assert shown.lines == ran.lines[1:-1], "what was logged is found again"
        assert (again.code, again.error["code"]) == (4, "folder_taken")
        sent = await bare("send", name, "And on.", "--wait", "-ojsonl")
        assert "Second." in sent.out

        await a_run_outlives_its_worker(bare, script, stack["pids"]["worker"])
        assert (await bare("doctor")).code == 0
        dev.send_signal(signal.SIGINT)
        _, said = await dev.communicate()
        assert dev.returncode == 0, said
    assert "Ended. Everything is kept" in said.decode()
    assert not any(is_running(pid) for pid in stack["pids"].values())


async def a_run_outlives_its_worker(bare: Perdure, script: Callable[..., str], worker: int) -> None:
    path = script({"content": "Still here.", "delay": 2.0})
    async with bare.started("run", "Live.", *scripted(path), "-ojsonl") as run:
        await line_with(run.stdout, "SystemPromptEvent")
        os.kill(worker, signal.SIGKILL)
        out, _ = await run.communicate()
    assert run.returncode == 0
    assert "Still here." in out.decode()
