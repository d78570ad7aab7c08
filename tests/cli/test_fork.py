"""`perdure fork`, `ask`, `replay` and `purge`: as a person or a program calls them."""

import asyncio
import json
from pathlib import Path

import pytest
import pytest_asyncio

from storage.conversations import exists
from storage.s3 import S3Store
from tests.cli.command import Perdure, calls, scripted


@pytest_asyncio.fixture(scope="session")
async def past(perdure: Perdure, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a conversation that wrote a file into a place, and can go on twice."""
    folder = tmp_path_factory.mktemp("past")
    made = calls("file_editor", command="create", path="a.txt", file_text="hello\n")
    answers = (made, {"content": "Written."}, *[{"content": "And more."}] * 2)
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": answers}))
    place = ("--workspace", f"{folder}")
    ran = await perdure("run", "Write.", *scripted(f"{script}"), *place, "-ojson")
    assert ran.code == 0, ran
    name: str = ran.json["result"]["conversation_id"]
    return name


@pytest.mark.long
async def test_a_fork_says_what_is_not_done_again_and_goes_on(perdure: Perdure, past: str) -> None:
    shown = await perdure("show", past, "--kind", "ActionEvent", "-ojsonl")
    at, call = shown.lines[0]["seq"], shown.lines[0]["tool_call_id"]
    text, fields = await asyncio.gather(
        perdure("fork", past), perdure("fork", past, "--at", f"{at}", "--model", "x", "-ojson")
    )
    assert (text.code, text.out.count("\n")) == (0, 1)
    child = text.out.strip()
    assert "same directory as the other conversation: " in text.err
    assert f"perdure send {child}" in text.err
    assert (fields.json["at"], fields.json["status"]) == (at, "running")
    assert (fields.json["parent"], fields.json["unanswered"]) == (past, [call])
    listed, sent = await asyncio.gather(
        perdure("ls", "--limit", "99", "-ojson"),
        perdure("send", child, "Go on.", "--wait", "-ojson"),
    )
    [one] = [one for one in listed.json if one["id"] == child]
    assert one["title"] == "Write."
    assert (sent.code, sent.json["result"]["turn"]) == (0, 2)


async def test_an_aside_is_printed_alone(perdure: Perdure, past: str) -> None:
    text, fields = await asyncio.gather(
        perdure("ask", past, "What did you do?"),
        perdure("ask", past, "-", "-ojson", stdin="What did you do?"),
    )
    assert (text.code, text.out) == (0, "ANSWER of 6 messages\n")
    assert fields.json["answer"] == "ANSWER of 6 messages"


@pytest.mark.long
async def test_a_recording_is_done_again_and_goes_on_live(
    perdure: Perdure, past: str, tmp_path: Path
) -> None:
    events = (await perdure("show", past, "-ojson")).json
    [said] = [event for event in events if event.get("source") == "user"]
    recording, live = tmp_path / "recording.json", tmp_path / "live.json"
    recording.write_text(json.dumps([*events, {**said, "llm_message": {"content": "And?"}}]))
    live.write_text(json.dumps({"answers": ["Live."] * 3}))
    replayed = ("replay", f"{recording}", *scripted(f"{live}"))
    done = await perdure(*replayed, "--workspace", f"{tmp_path / 'place'}", "-ojsonl")
    assert done.code == 0, done
    assert (tmp_path / "place" / "a.txt").read_text() == "hello\n"
    messages = [one["llm_message"] for one in done.lines if one.get("kind") == "MessageEvent"]
    texts = [message["content"][0]["text"] for message in messages]
    assert texts == ["Write.", "Written.", "And?", "Live."]
    result = done.lines[-1]["result"]
    assert (result["status"], result["turn"]) == ("finished", 2)
    assert done.lines[-1]["differing"] == []


async def test_a_result_that_is_not_the_recorded_one_is_named(
    perdure: Perdure, tmp_path: Path
) -> None:
    """Of a trajectory of OpenHands, with nobody to go on with."""
    function = {"name": "execute_bash", "arguments": '{"command": "echo new"}'}
    message = {"content": "Look.", "tool_calls": [{"id": "t1", "function": function}]}
    kept = {"tool_call_id": "t1", "model_response": {"choices": [{"message": message}]}}
    trajectory = [
        {"source": "user", "action": "message", "args": {"content": "Look."}},
        {"source": "agent", "action": "run", "args": {}, "tool_call_metadata": kept},
        {"source": "agent", "observation": "run", "content": "old", "tool_call_metadata": kept},
    ]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(trajectory))
    done = await perdure("replay", f"{path}")
    assert done.code == 1
    assert "recording_exhausted" in done.out
    assert "The result of terminal at seq 5 is not the recorded one." in done.err


@pytest.mark.long
async def test_a_purge_asks_first_and_leaves_nothing(
    perdure: Perdure, past: str, store: S3Store
) -> None:
    """Of forks that nobody has opened: none of them has a workflow."""
    forked = await perdure("fork", past)
    name = forked.out.strip()
    running, silent = await asyncio.gather(
        perdure("purge", past, "--yes", "-ojson"), perdure("purge", name)
    )
    assert (running.code, running.error["code"]) == (4, "conflict")
    assert f"perdure close {past}" in running.error["hint"]
    assert (silent.code, "Nothing was deleted" in silent.err) == (4, True)
    assert await exists(store, "local", name)
    agreed = await perdure("purge", name, stdin="y\n")
    assert agreed.code == 0, agreed
    assert not await exists(store, "local", name)
    assert await exists(store, "local", past)
