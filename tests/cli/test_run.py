"""`perdure run` and `perdure send`, from the first message to the exit code."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.client.ids import new_conversation_id
from perdure.storage.keys import LLM_MESSAGES, conversation_prefix
from perdure.storage.s3 import S3Store
from tests.cli.command import (
    HOLD,
    Perdure,
    interrupt,
    model_options,
    release,
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
    assert last["result"]["workspace"] == str(tmp_path)


@pytest.mark.long
async def test_the_messages_of_the_model_are_stored_when_the_command_ends(
    perdure: Perdure, script: Script, store: S3Store
) -> None:
    async def stored_messages(name: str) -> list[str]:
        prefix = conversation_prefix("local", name)
        body = json.loads(await store.read(prefix + LLM_MESSAGES) or b"{}")
        return [message["content"] for message in body["messages"][1:]]

    path = script({"content": "One."}, {"content": "Two."})
    name = (await perdure("run", "First.", *model_options(path), "-ojson")).json["conversation_id"]
    assert (await stored_messages(name))[-1] == "One."
    await perdure("send", name, "Second.", "--wait")
    assert (await stored_messages(name))[-1] == "Two."
    await store.close()


@pytest.mark.long
async def test_what_a_command_starts_takes_part_in_experiments(
    perdure: Perdure, script: Script
) -> None:
    variants = {"prompts": {"variants": {"terse": {"agent": {"instructions": "Be brief."}}}}}
    trying = perdure.with_env(PERDURE_EXPERIMENTS=json.dumps(variants))
    done = await trying("run", "Hi.", *model_options(script({"content": "Hello."})), "-ojson")
    shown = await perdure("show", done.json["conversation_id"], "--agent", "-ojson")
    assert shown.json["tags"] == ["experiment:prompts=terse"]
    assert shown.json["instructions"] == "Be brief."


@pytest.mark.long
async def test_the_folder_of_its_own_is_named_for_programs_where_it_is_on_this_machine(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    path = script(tool_call_answer("terminal", command="pwd > here"), "Done.", "Again.")
    done = await perdure("run", "Where?", *model_options(path), "-ojson")
    name, folder = done.json["conversation_id"], Path(done.json["workspace"])
    assert (folder / "here").read_text().strip() == str(folder)
    sent = await perdure("send", name, "Again.", "--wait", "-ojson")
    status = await perdure("status", name, "-ojson")
    assert sent.json["workspace"] == status.json["workspace"] == str(folder)
    elsewhere = perdure.with_env(PERDURE_DATA=str(tmp_path))
    assert (await elsewhere("status", name, "-ojson")).json["workspace"] is None


@pytest.mark.long
async def test_on_a_pipe_the_answer_is_printed_whole_and_nothing_else(
    perdure: Perdure, script: Script
) -> None:
    essay = " ".join(f"word{number}" for number in range(1000)) + "\n" + "line\n" * 40 + "end"
    path = script(tool_call_answer("finish", message=f"{essay} \x1b[2J"), {"content": "Bye."})
    done = await perdure("run", "Write an essay.", *model_options(path))
    assert (done.code, done.out) == (0, f"{essay} \\x1b[2J\n"), "a model must not steer a terminal"
    assert "\x1b" not in done.out + done.err, "there is no colour where there is no terminal"
    name = re.search(r"conversation  (\S+)", done.err)
    assert name is not None
    sent = await perdure("send", name[1], "Bye.", "--print")
    assert (sent.code, sent.out, sent.err) == (0, "Bye.\n", ""), "--print waits for the answer"
    shown = await perdure("show", name[1])
    assert "line\n" * 3 in shown.out.replace(" ", ""), "what the agent says is never cut"


@pytest.mark.long
async def test_json_has_the_answer_its_cost_and_whether_it_was_cut_off(
    perdure: Perdure, script: Script
) -> None:
    path = script({"content": "Half an", "finish_reason": "length"})
    done = await perdure("run", "Say it all.", *model_options(path), "-ojson")
    result = {name: done.json[name] for name in ("answer", "status", "truncated", "cost")}
    assert result == {"answer": "Half an", "status": "finished", "truncated": True, "cost": 0.0}
    assert done.json["reason"] == "the answer was cut off at the model's length limit"
    text = await perdure("status", done.json["conversation_id"])
    assert "the answer was cut off at the model's length limit" in text.out


@pytest.mark.long
async def test_a_turn_without_an_answer_has_not_that_of_an_earlier_one(
    perdure: Perdure, script: Script
) -> None:
    path = script({"content": "One."}, tool_call_answer("terminal", command="true"))
    agent = (*model_options(path), "--confirm", "always")
    first = await perdure("run", "Say one.", *agent, "-ojson")
    name = first.json["conversation_id"]
    assert (first.code, first.json["answer"]) == (0, "One.")
    waiting = await perdure("send", name, "Do it.", "--wait", "-ojson")
    assert (waiting.code, waiting.json["answer"]) == (4, "")
    approved = await perdure("approve", name)
    assert approved.code == 0, approved
    failed = await perdure("send", name, "And now?", "--print")
    assert (failed.code, failed.out) == (1, "")
    assert "script_exhausted" in failed.err


@pytest.mark.long
async def test_only_the_output_of_tools_is_folded_and_full_shows_it(
    perdure: Perdure, script: Script
) -> None:
    path = script(tool_call_answer("terminal", command="seq 1 100"), {"content": "Done."})
    done = await perdure("run", "Count.", *model_options(path), "-ojson")
    name = done.json["conversation_id"]
    folded, full = await perdure("show", name), await perdure("show", name, "--full")
    assert "more lines; --full shows them" in folded.out
    assert re.search(r"^ +57$", folded.out, re.MULTILINE) is None
    assert re.search(r"^ +57$", full.out, re.MULTILINE)
    seq = next(
        line["seq"]
        for line in (await perdure("show", name, "-ojsonl")).lines
        if line["kind"] == "ObservationEvent"
    )
    single = await perdure("show", name, "--seq", str(seq))
    assert re.search(r"^ +57$", single.out, re.MULTILINE)
    assert "Done." not in single.out
    missing = await perdure("show", name, "--seq", "999")
    assert (missing.code, "There is no event 999." in missing.err) == (3, True)


@pytest.mark.long
async def test_the_same_id_again_is_a_conflict_that_names_send(
    perdure: Perdure, script: Script
) -> None:
    path, name = script({"content": "one"}, {"content": "two"}), new_conversation_id()
    first = await perdure(
        "run", "-", "--id", name, *model_options(path), "-ojson", stdin="Say one."
    )
    assert (first.code, first.json["turn"]) == (0, 1)
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
        "extension_not_found": (*model_options(short), "--condenser", "no_such_module:plan"),
        "extension_not_found: The analyzer 'math:pi' cannot be used": (
            *model_options(short),
            *("-c", 'analyzers=["math:pi"]'),
        ),
        "max_iterations": (*model_options(short), "--max-iterations", "1"),
    }
    ran = await asyncio.gather(*(perdure("run", "Go.", *how, "-ojson") for how in ends.values()))
    for code, done in zip(ends, ran, strict=True):
        assert (done.code, done.json["status"]) == (1, "error")
        assert done.json["reason"].startswith(f"{code}: ")
    name = ran[0].json["conversation_id"]
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
    path = script(tool_call_answer("terminal", command=HOLD), {"content": "Slept."})
    async with perdure.start("run", "Sleep.", *model_options(path), "-ojsonl") as process:
        first = await wait_for_line(process.stdout, "conversation_id")
        await wait_for_line(process.stdout, "ActionEvent")
        ended = await interrupt(process)
    assert ended.code == 130
    assert "The conversation goes on" in ended.err
    name = first.split('"')[3]
    await release(perdure)
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
