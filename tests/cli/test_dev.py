"""`perdure dev`, and `perdure run` without settings: embedded stacks on real ports."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import (
    Perdure,
    clean_environment,
    model_options,
    tool_call_answer,
    wait_for_line,
)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
async def test_an_embedded_stack_keeps_conversations_and_survives_its_worker(
    tmp_path: Path, script: Callable[..., str]
) -> None:
    data = tmp_path / "data"
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(data)})
    path = script(
        tool_call_answer("think", thought="Hm."),
        {"content": "First.", "delay": 0.1},
        {"content": "Second."},
    )
    ran = await bare("run", "Go.", *model_options(path), "-ojsonl")
    assert (ran.code, ran.lines[-1]["result"]["status"]) == (0, "finished"), ran
    assert "starting one for this command" in ran.err
    assert "http://127.0.0.1:" in ran.err
    assert not (data / "stack.json").exists()
    name = ran.lines[0]["conversation_id"]

    async with bare.start("dev", "--data", str(data), "-ojsonl") as dev:
        stack = json.loads(await wait_for_line(dev.stdout, "pids"))
        assert "AWS_SECRET_ACCESS_KEY" not in str(stack)
        listed, log, again = await asyncio.gather(
            bare("ls", "-ojson"), bare("show", name, "-ojsonl"), bare("dev", "-ojson")
        )
        assert [item["id"] for item in listed.json] == [name]
        assert log.lines == ran.lines[1:-1], "what was logged is found again"
        assert (again.code, again.error["code"]) == (4, "folder_taken")
        sent = await bare("send", name, "And on.", "--wait", "-ojsonl")
        assert "Second." in sent.out

        await assert_run_outlives_its_worker(bare, script, stack["pids"]["worker"])
        assert (await bare("doctor")).code == 0
        dev.send_signal(signal.SIGINT)
        _, errors = await dev.communicate()
        assert dev.returncode == 0, errors
    assert "Ended. Everything is kept" in errors.decode()
    assert not any(is_running(pid) for pid in stack["pids"].values())


async def assert_run_outlives_its_worker(
    bare: Perdure, script: Callable[..., str], worker: int
) -> None:
    path = script({"content": "Still here.", "delay": 2.0})
    async with bare.start("run", "Live.", *model_options(path), "-ojsonl") as run:
        await wait_for_line(run.stdout, "SystemPromptEvent")
        os.kill(worker, signal.SIGKILL)
        out, _ = await run.communicate()
    assert run.returncode == 0
    assert "Still here." in out.decode()
