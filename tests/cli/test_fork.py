"""`perdure fork`, `ask`, `replay` and `rm`: as a person or a program calls them."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.storage.conversations import conversation_exists
from perdure.storage.keys import conversation_prefix
from perdure.storage.s3 import S3Store
from tests.cli.command import Perdure, model_options, tool_call_answer, wait_until_recorded
from tests.cli.test_terminal import run_on_terminal


@pytest_asyncio.fixture(scope="session")
async def conversation_id(perdure: Perdure, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a conversation that wrote a file, and whose script has two more answers."""
    folder = tmp_path_factory.mktemp("past")
    made = tool_call_answer("file_editor", command="create", path="a.txt", file_text="hello\n")
    answers = (made, {"content": "Written."}, *[{"content": "And more."}] * 2)
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": answers}))
    place = ("--workspace", f"{folder}")
    ran = await perdure("run", "Write.", *model_options(f"{script}"), *place, "-ojson")
    assert ran.code == 0, ran
    name: str = ran.json["conversation_id"]
    return name


@pytest.mark.long
async def test_a_fork_names_the_calls_it_does_not_repeat_and_goes_on(
    perdure: Perdure, conversation_id: str
) -> None:
    log = await perdure("show", conversation_id, "--kind", "ActionEvent", "-ojsonl")
    at, call = log.lines[0]["seq"], log.lines[0]["tool_call_id"]
    text, fields = await asyncio.gather(
        perdure("fork", conversation_id),
        perdure("fork", conversation_id, "--at", f"{at}", "--model", "openai/x", "-ojson"),
    )
    assert (text.code, text.out.count("\n")) == (0, 1)
    child = text.out.strip()
    assert "same directory as the other conversation: " in text.err
    assert f"perdure send {child}" in text.err
    assert "and waits for you." in text.err
    assert "running" not in text.err
    assert (fields.json["at"], fields.json["status"]) == (at, "running")
    assert (fields.json["parent"], fields.json["unanswered"]) == (conversation_id, [call])
    cut = await perdure("status", fields.json["conversation_id"], "-ojson")
    assert (cut.json["status"], cut.json["reason"][:6]) == ("idle", "forked")
    listed, sent = await asyncio.gather(
        perdure("ls", "--limit", "99", "-ojson"),
        perdure("send", child, "Go on.", "--wait", "-ojson"),
    )
    [entry] = [item for item in listed.json if item["id"] == child]
    assert entry["title"] == "Write."
    assert (sent.code, sent.json["turn"]) == (0, 2)


@pytest.mark.long
async def test_a_fork_says_whether_its_own_folder_has_files(
    perdure: Perdure, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    made = tool_call_answer("file_editor", command="create", path="a.txt", file_text="hello\n")
    script.write_text(json.dumps({"answers": (made, {"content": "Written."})}))
    ran = await perdure("run", "Write.", *model_options(f"{script}"), "-ojson")
    parent = ran.json["conversation_id"]
    full, empty = await asyncio.gather(
        perdure("fork", parent, "--at", f"{ran.json['next_seq'] - 2}"),
        perdure("fork", parent, "--at", "3"),
    )
    assert "in the middle of a turn" in full.err
    assert "a folder of its own, which has the files of that seq." in full.err
    assert "a folder of its own, which is empty." in empty.err


@pytest.mark.long
async def test_the_answer_of_ask_is_printed_alone(perdure: Perdure, conversation_id: str) -> None:
    text, fields = await asyncio.gather(
        perdure("ask", conversation_id, "What did you do?"),
        perdure("ask", conversation_id, "-", "-ojson", stdin="What did you do?"),
    )
    assert (text.code, text.out) == (0, "ANSWER of 6 messages\n")
    assert fields.json["answer"] == "ANSWER of 6 messages"


@pytest.mark.long
async def test_a_recording_is_replayed_and_goes_on_live(
    perdure: Perdure, conversation_id: str, tmp_path: Path
) -> None:
    events = (await perdure("show", conversation_id, "-ojson")).json
    [user_message] = [event for event in events if event.get("source") == "user"]
    recording, live = tmp_path / "recording.json", tmp_path / "live.json"
    recording.write_text(
        json.dumps([*events, {**user_message, "llm_message": {"content": "And?"}}])
    )
    live.write_text(json.dumps({"answers": ["Live."] * 3}))
    replayed = ("replay", f"{recording}", *model_options(f"{live}"))
    done = await perdure(*replayed, "--workspace", f"{tmp_path / 'place'}", "-ojsonl")
    assert done.code == 0, done
    assert (tmp_path / "place" / "a.txt").read_text() == "hello\n"
    messages = [line["llm_message"] for line in done.lines if line.get("kind") == "MessageEvent"]
    texts = [message["content"][0]["text"] for message in messages]
    assert texts == ["Write.", "Written.", "And?", "Live."]
    result = done.lines[-1]["result"]
    assert (result["status"], result["turn"]) == ("finished", 2)
    assert result["differing"] == []


@pytest.mark.long
async def test_a_replayed_result_that_differs_is_named(perdure: Perdure, tmp_path: Path) -> None:
    """The recording is a trajectory of OpenHands, without a live model."""
    function = {"name": "execute_bash", "arguments": '{"command": "echo new"}'}
    message = {"content": "Look.", "tool_calls": [{"id": "t1", "function": function}]}
    metadata = {"tool_call_id": "t1", "model_response": {"choices": [{"message": message}]}}
    trajectory = [
        {"source": "user", "action": "message", "args": {"content": "Look."}},
        {"source": "agent", "action": "run", "args": {}, "tool_call_metadata": metadata},
        {"source": "agent", "observation": "run", "content": "old", "tool_call_metadata": metadata},
    ]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(trajectory))
    done = await perdure("replay", f"{path}")
    assert done.code == 1
    assert "recording_exhausted" in done.err
    assert "The result of terminal at seq 5 is not the recorded one." in done.err


@pytest.mark.long
async def test_a_deletion_asks_first_and_leaves_nothing(
    perdure: Perdure, conversation_id: str, store: S3Store
) -> None:
    """The deleted fork was never opened, so it has no workflow."""
    forked = await perdure("fork", conversation_id)
    name = forked.out.strip()
    origin, silent, piped = await asyncio.gather(
        perdure("rm", conversation_id, "--yes", "-ojson"),
        perdure("rm", name),
        perdure("purge", name, stdin="y\n"),
    )
    assert (origin.code, origin.error["code"]) == (4, "conflict")
    assert "--with-forks" in origin.error["hint"]
    assert (silent.code, "Nothing was deleted" in silent.err) == (4, True)
    assert (piped.code, "--yes" in piped.err) == (4, True), "a pipe is no person"
    assert await conversation_exists(store, "local", name)
    screen = await run_on_terminal(perdure, ["rm", name], b"y\n")
    assert "Delete 1 conversation for good?" in screen
    assert not await conversation_exists(store, "local", name)
    assert await conversation_exists(store, "local", conversation_id)


@pytest.mark.long
async def test_a_conversation_at_work_is_deleted_by_force_alone(
    perdure: Perdure, script: Callable[..., str], store: S3Store
) -> None:
    path = script(tool_call_answer("terminal", command="sleep 600"))
    started = await perdure("run", "Sleep.", "--detach", *model_options(path), "-ojson")
    name = started.json["conversation_id"]
    await wait_until_recorded(store, name)
    refused = await perdure("rm", name, "-y", "-ojson")
    assert (refused.code, "--force" in refused.error["hint"]) == (4, True)
    assert await conversation_exists(store, "local", name)
    done = await perdure("rm", name, "-y", "--force", "-ojson")
    assert (done.code, done.json["purged"], done.json["histories"]) == (0, [name], 1)
    assert await store.list(conversation_prefix("local", name)) == []
