"""`perdure dev`, and `perdure run` without settings: embedded stacks on real ports."""

import asyncio
import json
import os
import signal
import socket
import subprocess
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
        assert f"pid {dev.pid}" in again.error["message"]
        sent = await bare("send", name, "And on.", "--wait", "-ojsonl")
        assert "Second." in sent.out
        address = await bare("address", "create", name)
        assert address.out.startswith(f"{stack['gateway']}/v1/posts/")

        await assert_run_outlives_its_worker(bare, script, stack["pids"]["worker"])
        await assert_run_outlives_the_servers(bare, script, data)
        stack = json.loads((data / "stack.json").read_text())
        assert (await bare("doctor")).code == 0
        dev.send_signal(signal.SIGINT)
        _, errors = await dev.communicate()
        assert dev.returncode == 0, errors
    assert "Ended. Everything is kept" in errors.decode()
    for name in ("Temporal", "The store", "The worker"):
        deaths = [line for line in errors.decode().splitlines() if line.startswith(f"{name} (pid")]
        assert [line for line in deaths if "died by signal 9" in line] == deaths
        assert len(deaths) == 1, "a death is said once"
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


async def assert_run_outlives_the_servers(
    bare: Perdure, script: Callable[..., str], data: Path
) -> None:
    path = script(
        *(tool_call_answer("think", thought=f"Step {step}.") | {"delay": 1.5} for step in range(4)),
        {"content": "Still here, too."},
    )
    async with bare.start("run", "Live.", *model_options(path), "-ojsonl") as run:
        for name, step in (("temporal", "Step 0"), ("weed", "Step 1")):
            await wait_for_line(run.stdout, step)
            os.kill(json.loads((data / "stack.json").read_text())["pids"][name], signal.SIGKILL)
        out, err = await run.communicate()
    assert run.returncode == 0, err.decode()
    assert "Still here, too." in out.decode()
    steps = [line for line in out.decode().splitlines() if "Step 3." in line]
    assert len(steps) == 1, "no event is written twice"


@pytest.mark.long
async def test_a_run_with_a_stack_of_its_own_outlives_its_servers(
    tmp_path: Path, script: Callable[..., str]
) -> None:
    data = tmp_path / "data"
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(data)})
    await assert_run_outlives_the_servers(bare, script, data)


@pytest.mark.long
async def test_env_prints_what_other_programs_need_to_use_the_stack(tmp_path: Path) -> None:
    data = tmp_path / "a folder"
    bare = Perdure({**clean_environment(), "MISTRAL_API_KEY": "sk-secret"})
    async with bare.start("dev", "--data", str(data)) as dev:
        assert "MISTRAL_API_KEY" in await wait_for_line(dev.stdout, "model keys")
        export = await wait_for_line(dev.stderr, "export PERDURE_DATA")
        elsewhere = bare.with_env(PERDURE_DATA=str(data), AWS_PROFILE="work")
        lines, fields = await asyncio.gather(elsewhere("env"), elsewhere("env", "-ojson"))
        dev.send_signal(signal.SIGINT)
        out, err = await dev.communicate()
    assert export.strip() == f"export PERDURE_DATA='{data}'"
    assert b"sk-secret" not in out + err
    shell = ["sh", "-euc", 'eval "$1"; env', "sh", lines.out]
    seen = subprocess.run(shell, env=elsewhere.env, capture_output=True, text=True, check=True)
    variables = dict(line.split("=", 1) for line in seen.stdout.splitlines() if "=" in line)
    assert fields.json.items() <= variables.items()
    assert {"PERDURE_STORE", "TEMPORAL_ADDRESS", "AWS_SECRET_ACCESS_KEY"} <= fields.json.keys()
    assert "AWS_PROFILE" not in variables


async def test_env_without_a_stack_says_how_to_start_one(tmp_path: Path) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    done = await bare("env", "-ojson")
    assert (done.code, done.error["code"]) == (6, "unreachable")
    assert "perdure dev" in done.error["hint"]


@pytest.mark.long
async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = await bare("dev", "--ui-port", str(port), "-ojson")
    assert (done.code, done.error["code"]) == (4, "port_taken")
    assert f"Port {port} cannot be had" in done.error["message"]
