"""`perdure run` and `perdure send`, from the first message to the exit code."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.client.ids import new_conversation_id
from perdure.storage.s3 import S3Store
from tests.cli.command import (
    Perdure,
    interrupt,
    model_options,
    tool_call_answer,
    wait_for_line,
    wait_until_recorded,
)

Script = Callable[..., str]


async def test_a_task_runs_to_its_end_and_every_event_is_printed(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    made = tool_call_answer("file_editor", command="create", path="a.txt", file_text="one\n")
    path = script(made, tool_call_answer("finish", message="All done."))
    done = await perdure(
        "run", "Make it.", *model_options(path), "--workspace", f"{tmp_path}", "-ojsonl"
    )
    assert (done.code, (tmp_path / "a.txt").read_text()) == (0, "one\n")
    first, *events, last = done.lines
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert [event["kind"] for event in events[2:] if event["kind"] != "RecallEvent"] == [
        "SystemPromptEvent",
        "MessageEvent",
        "ActionEvent",
        "ObservationEvent",
        "ActionEvent",
        "ObservationEvent",
    ]
    assert last["result"]["status"] == "finished"
    assert last["result"]["conversation_id"] == first["conversation_id"]


async def test_text_output_shows_the_events_and_where_to_see_more(
    perdure: Perdure, script: Script
) -> None:
    done = await perdure(
        "run", "Say hello.", *model_options(script({"content": "Hello \x1b[2Jthere."}))
    )
    assert done.code == 0
    assert "user        Say hello." in done.out
    assert "agent       Hello \\x1b[2Jthere." in done.out, "a model must not steer the terminal"
    assert "finished after 1 answer of the model" in done.out
    assert "\x1b" not in done.out + done.err, "there is no colour where there is no terminal"
    assert "s3://cli-tests/users/local/conversations/" in done.err


@pytest.mark.long
async def test_the_same_id_again_is_a_conflict_that_names_send(
    perdure: Perdure, script: Script
) -> None:
    path, name = script({"content": "one"}, {"content": "two"}), new_conversation_id()
    first = await perdure(
        "run", "-", "--id", name, *model_options(path), "-ojson", stdin="Say one."
    )
    assert (first.code, first.json["result"]["turn"]) == (0, 1)
    again = await perdure("run", "Say one.", "--id", name, *model_options(path), "-ojson")
    assert (again.code, again.error["code"]) == (4, "conflict")
    assert f"perdure send {name}" in again.error["hint"]
    sent = await perdure("send", name, "Say two.", "--wait", "-ojsonl")
    assert (sent.code, sent.lines[-1]["result"]["turn"]) == (0, 2)


@pytest.mark.long
async def test_a_failed_agent_gives_exit_code_1(perdure: Perdure, script: Script) -> None:
    short = script(tool_call_answer("think", thought="Hm."))
    missing = f"scripted:{short}.gone"
    ends = {
        "script_exhausted": ("--model", f"scripted:{short}"),
        "model_not_found": ("--model", missing),
        "tool_not_found": (*model_options(short), "--tools", "no_such_module:tool"),
        "max_iterations": (*model_options(short), "--max-iterations", "1"),
    }
    ran = await asyncio.gather(*(perdure("run", "Go.", *how, "-ojson") for how in ends.values()))
    for code, done in zip(ends, ran, strict=True):
        assert (done.code, done.json["result"]["status"]) == (1, "error")
        assert done.json["result"]["reason"].startswith(f"{code}: ")
    name = ran[0].json["result"]["conversation_id"]
    log = await perdure("show", name, "--kind", "MessageEvent", "-ojsonl")
    assert len(log.lines) == 1, "the message is not lost"


@pytest.mark.long
async def test_a_timeout_ends_the_wait_and_the_work_goes_on(
    configured: Perdure, script: Script, store: S3Store
) -> None:
    """No worker runs on this queue until after the wait."""
    queue = {"PERDURE_TASK_QUEUE": f"cli-{uuid4()}"}
    name, path = new_conversation_id(), script({"content": "At last."})
    alone = configured.with_env(**queue)
    late = await alone(
        "run", "Go.", "--id", name, *model_options(path), "--timeout", "0.5", "-ojson"
    )
    assert (late.code, late.error["code"]) == (5, "timed_out")
    assert f"perdure watch {name}" in late.error["hint"]
    again = await alone("run", "Go.", "--id", name, *model_options(path))
    assert again.code == 4, "it has been started, though nothing of it is in the log yet"
    sent = await alone("send", name, "And this.", "-ojson")
    assert sent.code == 0
    async with alone.start("worker"):
        await wait_until_recorded(store, name)
        done = await alone("watch", name, "--until-rest", "-ojsonl")
    assert done.code == 0
    assert "And this." in done.out, "what was sent while nobody worked is not lost"


@pytest.mark.long
async def test_interrupting_a_run_leaves_the_conversation_to_go_on(
    perdure: Perdure, script: Script
) -> None:
    path = script(tool_call_answer("terminal", command="sleep 1"), {"content": "Slept."})
    async with perdure.start("run", "Sleep.", *model_options(path), "-ojsonl") as process:
        first = await wait_for_line(process.stdout, "conversation_id")
        await wait_for_line(process.stdout, "ActionEvent")
        ended = await interrupt(process)
    assert ended.code == 130
    assert "The conversation goes on" in ended.err
    name = first.split('"')[3]
    watched = await perdure("watch", name, "--until-rest")
    assert (watched.code, "Slept." in watched.out) == (0, True)


@pytest.mark.long
async def test_a_detached_run_prints_the_id_alone(
    perdure: Perdure, script: Script, store: S3Store
) -> None:
    detached = await perdure("run", "Go.", *model_options(script({"content": "Gone."})), "--detach")
    assert (detached.code, detached.out.count("\n")) == (0, 1)
    name = detached.out.strip()
    await wait_until_recorded(store, name)
    watched = await perdure("watch", name, "--until-rest", "-ojson")
    assert watched.json[-1]["llm_message"]["content"][0]["text"] == "Gone."
