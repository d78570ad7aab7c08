"""`perdure acp` as a process that an editor starts, and what it outlives."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acp.editor import start_editor
from tests.cli.command import (
    HOLD,
    Perdure,
    clean_environment,
    model_options,
    release,
    tool_call_answer,
    wait_for_line,
)

pytestmark = pytest.mark.long

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 7}}


async def test_a_process_that_is_killed_in_mid_turn_has_lost_nothing(
    perdure: Perdure, behind_gateway: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    held = tool_call_answer("terminal", command=f"echo begun; {HOLD}; echo done")
    options = model_options(script({"content": "First."}, held, {"content": "Second."}))
    for command in (perdure, behind_gateway):
        async with start_editor(command.env, *options) as run:
            session_id = await run.open(tmp_path)
            await run.prompt(session_id, "One.")
            asking = asyncio.create_task(run.prompt(session_id, "Two."))
            await run.editor.wait_for("tool_call")
            assert run.process is not None
            run.process.kill()
            asking.cancel()
            await run.process.wait()
            run.was_killed = True
        await release(perdure)
        async with start_editor(command.env, *options) as run:
            await run.agent.load_session(cwd=str(tmp_path), session_id=session_id)
            while not run.editor.text().endswith("Second."):
                run.editor.seen.clear()
                await run.editor.seen.wait()
            assert run.editor.text("user_message_chunk") == "One.Two."
            assert run.editor.text() == "First.Second."
            [result] = [
                update
                for update in run.editor.of_kind("tool_call_update")
                if update["status"] == "completed"
            ]
            assert result["rawOutput"].startswith("begun\ndone")


@pytest.mark.timeout(300)
async def test_a_worker_that_is_killed_in_mid_turn_costs_the_prompt_nothing(
    configured: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    alone = configured.with_env(PERDURE_TASK_QUEUE=f"acp-{tmp_path.name}")
    words = {"content": " ".join(map(str, range(200))), "chunk_delay": 0.05}
    async with (
        alone.start("worker") as first,
        start_editor(alone.env, *model_options(script(words, {"content": "Over."}))) as run,
    ):
        await wait_for_line(first.stderr, "polls")
        session_id = await run.open(tmp_path)
        asking = asyncio.create_task(run.prompt(session_id, "Count."))
        await run.editor.wait_for("agent_message_chunk")
        first.send_signal(signal.SIGKILL)
        await first.wait()
        async with alone.start("worker") as second:
            await wait_for_line(second.stderr, "polls")
            assert (await asking).stop_reason == "end_turn"
            assert run.editor.text() == words["content"]


async def test_the_end_of_stdin_is_the_end_of_the_process_and_not_of_the_turn(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    held = tool_call_answer("terminal", command=f"{HOLD}; echo done")
    options = model_options(script(held, {"content": "Over."}))
    async with start_editor(perdure.env, *options) as run:
        session_id = await run.open(tmp_path)
        asking = asyncio.create_task(run.prompt(session_id, "Hold."))
        await run.editor.wait_for("tool_call")
    # `start_editor` has seen the exit code 0
    asking.cancel()
    await release(perdure)
    watched = await perdure("watch", session_id, "--until-rest", "-o", "json")
    assert watched.code == 0
    assert "Over." in watched.out


async def ask_raw(command: Perdure, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Send requests, and return their answers in the same order."""
    async with command.start("acp") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, request in enumerate((HELLO, *requests), 1):
            line = json.dumps({"jsonrpc": "2.0", **request, "id": number})
            process.stdin.write(line.encode() + b"\n")
        process.stdin.close()  # what was asked before is answered all the same
        answers = [json.loads(line) async for line in process.stdout]
        assert await process.wait() == 0
    return sorted(answers, key=lambda answer: int(answer["id"]))[1:]


NEW: dict[str, Any] = {"method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


async def test_where_nothing_runs_the_editor_is_told_what_to_do(tmp_path: Path) -> None:
    nowhere = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    [refused, listed] = await ask_raw(nowhere, NEW, {"method": "session/list", "params": {}})
    for answer in (refused, listed):
        assert answer["error"]["code"] == -32603
        assert "perdure dev" in answer["error"]["message"]


async def test_without_a_model_the_editor_is_told_so(perdure: Perdure) -> None:
    [refused] = await ask_raw(perdure, NEW)
    assert refused["error"]["code"] == -32602
    assert "--model NAME" in refused["error"]["message"]


async def test_a_gateway_that_is_not_there_and_a_key_that_is_none(
    behind_gateway: Perdure,
) -> None:
    wrong = behind_gateway.with_env(PERDURE_GATEWAY_KEY="pk_none")
    [refused] = await ask_raw(wrong, NEW)
    assert refused["error"]["code"] == -32603
    none = behind_gateway.without_env("PERDURE_GATEWAY_KEY")
    [refused] = await ask_raw(none, NEW)
    assert "PERDURE_GATEWAY_KEY" in refused["error"]["message"]


async def test_a_folder_is_only_a_label_where_the_worker_may_be_elsewhere(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    options = model_options(script({"content": "5"}))
    async with start_editor(perdure.env, *options) as run:
        session_id = await run.open(tmp_path)
        await run.prompt(session_id, "2 + 3?")
    shown = (await perdure("show", session_id, "--agent")).out
    assert f'"cwd:{tmp_path}"' in shown
    assert 'workspace = "' not in shown


@pytest.mark.timeout(300)
async def test_a_folder_is_the_workspace_where_perdure_dev_runs(
    script: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    edit = tool_call_answer("file_editor", command="create", path="sum.txt", file_text="5\n")
    options = model_options(script(edit, {"content": "5"}))
    here = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")})
    async with here.start("dev", "--no-gateway", "-o", "jsonl") as dev:
        await wait_for_line(dev.stdout, "pids")
        async with start_editor(here.env, *options) as run:
            session_id = await run.open(folder)
            await run.prompt(session_id, "2 + 3?")
            [found] = (await run.agent.list_sessions()).sessions
            assert (found.session_id, found.cwd) == (session_id, str(folder))
        dev.send_signal(signal.SIGINT)
        await dev.communicate()
    assert (folder / "sum.txt").read_text() == "5\n"
