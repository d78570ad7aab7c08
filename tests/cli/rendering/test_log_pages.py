"""Commands that read logs, with the store alone."""

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.storage.keys import STATE, conversation_prefix, event_key
from perdure.storage.s3 import S3Store
from tests.cli.command import Perdure, interrupt, model_options, tool_call_answer, wait_for_line


@dataclass(frozen=True)
class RecordedConversation:
    """A finished conversation, and a command with only its store."""

    name: str
    alone: Perdure


@pytest_asyncio.fixture(scope="session")
async def conversation(
    perdure: Perdure, tmp_path_factory: pytest.TempPathFactory
) -> RecordedConversation:
    many = "\n".join(f"echo line {number}" for number in range(40))
    answers = (
        {**tool_call_answer("terminal", command=many), "content": "Let me see."},
        {**tool_call_answer("terminal", command="exit 3")},
        {"content": "That is all.", "usage": {"prompt_tokens": 1000, "cost": 0.25}},
    )
    path = tmp_path_factory.mktemp("past") / "script.json"
    path.write_text(json.dumps({"answers": answers}))
    ran = await perdure("run", "Count to forty,\nplease.", *model_options(str(path)), "-ojson")
    assert ran.code == 0, ran
    nowhere = perdure.with_env(TEMPORAL_ADDRESS="127.0.0.1:1")
    return RecordedConversation(ran.json["conversation_id"], nowhere)


@pytest.mark.long
async def test_show_prints_each_event_in_a_few_lines(conversation: RecordedConversation) -> None:
    page = await conversation.alone("show", conversation.name)
    assert page.code == 0
    assert "user        Count to forty,\n" in page.out
    assert "agent       Let me see.\n" in page.out
    assert "$ echo line 0\n" in page.out
    assert "more lines; --full shows them ...]" in page.out
    assert "exit code 3" in page.out
    assert "(1,000 tokens, $0.2500, " in page.out


@pytest.mark.long
async def test_json_output_has_the_events_as_stored(conversation: RecordedConversation) -> None:
    whole, part, kind = await asyncio.gather(
        conversation.alone("show", conversation.name, "-ojson"),
        conversation.alone("show", conversation.name, "--after", "1", "--limit", "2", "-ojsonl"),
        conversation.alone("show", conversation.name, "--kind", "ObservationEvent", "-ojsonl"),
    )
    assert [event["seq"] for event in whole.json] == list(range(9))
    assert part.lines == whole.json[2:4]
    assert [event["tool_name"] for event in kind.lines] == ["terminal", "terminal"]


@pytest.mark.long
async def test_an_unknown_kind_is_answered_with_the_kinds_of_the_log(
    conversation: RecordedConversation,
) -> None:
    page = await conversation.alone("show", conversation.name, "--kind", "Observation")
    assert (page.code, page.out) == (0, "")
    assert "ActionEvent" in page.err


@pytest.mark.long
async def test_the_contents_of_long_edits_are_shown_in_full_on_request(
    perdure: Perdure, tmp_path: Path
) -> None:
    before = "".join(f"number {number}\n" for number in range(5000))
    create = tool_call_answer("file_editor", command="create", path="a.txt", file_text=before)
    change = {"path": "a.txt", "old_str": "number 4321\n", "new_str": "another\n"}
    replace = tool_call_answer("file_editor", command="str_replace", **change)
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [create, replace, {"content": "Done."}]}))
    ran = await perdure("run", "Write.", *model_options(str(script)), "-ojson")
    name = ran.json["conversation_id"]
    stored = await perdure("show", name, "--kind", "ObservationEvent", "-ojsonl")
    [_, edit] = stored.lines
    assert edit["observation"]["new_content"].startswith("blobs/"), "it is too long for an event"
    single, full, text, watched = await asyncio.gather(
        perdure("show", name, "--seq", f"{edit['seq']}", "-ojson"),
        perdure("show", name, "--kind", "ObservationEvent", "--full", "-ojsonl"),
        perdure("show", name, "--seq", f"{edit['seq']}"),
        perdure("watch", name, "--until-rest", "--full", "-ojsonl"),
    )
    after = before.replace("number 4321\n", "another\n")
    shown = [line for line in watched.lines if line["seq"] == edit["seq"]]
    for document in (*single.json, full.lines[-1], *shown):
        observation = document["observation"]
        assert (observation["old_content"], observation["new_content"]) == (before, after)
    assert len(shown) == 1
    assert re.search(r"^ +-number 4321\n +\+another$", text.out, re.MULTILINE)


@pytest.mark.long
async def test_the_list_has_the_status_and_title_of_each_conversation(
    conversation: RecordedConversation,
) -> None:
    listed, text = await asyncio.gather(
        conversation.alone("ls", "--limit", "99", "-ojson"),
        conversation.alone("ls", "--limit", "99"),
    )
    [entry] = [entry for entry in listed.json if entry["id"] == conversation.name]
    assert (entry["status"], entry["turn"], entry["events"]) == ("finished", 1, 9)
    assert entry["title"] == "Count to forty, please."
    assert conversation.name in text.out
    assert "Count to forty, please." in text.out


@pytest.mark.long
async def test_the_status_comes_from_the_workflow_or_from_the_log(
    conversation: RecordedConversation, perdure: Perdure
) -> None:
    online, offline = await asyncio.gather(
        perdure("status", conversation.name, "-ojson"),
        conversation.alone("status", conversation.name, "-ojson"),
    )
    assert online.json == offline.json
    assert online.json["spent"]["cost"] == 0.25
    assert "This is what the log says" in offline.err


@pytest.mark.long
async def test_a_closed_pipe_causes_no_traceback(conversation: RecordedConversation) -> None:
    async with conversation.alone.start("show", conversation.name, "-ojsonl") as show:
        assert show.stdout is not None
        show.stdout._transport.close()  # type: ignore[attr-defined]
        assert show.stderr is not None
        errors = await show.stderr.read()
    assert b"Traceback" not in errors


@pytest.mark.long
async def test_doctor_passes_or_says_what_to_mend(perdure: Perdure) -> None:
    well, alone = await asyncio.gather(
        perdure("doctor", "-ojsonl"),
        perdure.with_env(PERDURE_TASK_QUEUE="nobody", PERDURE_MODEL="openai/x")("doctor"),
    )
    assert (well.code, {line["ok"] for line in well.lines}) == (0, {True})
    assert alone.code == 6
    assert "failed  worker" in alone.out
    assert "perdure worker" in alone.out
    assert "failed  model" in alone.out
    assert "OPENAI_API_KEY is not set" in alone.out


@pytest.mark.long
async def test_a_damaged_state_object_does_not_break_the_list(
    conversation: RecordedConversation, store: S3Store
) -> None:
    key = f"{conversation_prefix('local', conversation.name)}{STATE}"
    state = await store.read(key)
    assert state is not None
    await store.replace(key, b'{"next_seq": "many"}')
    listed = await conversation.alone("ls", "--limit", "99", "-ojson")
    await store.replace(key, state)
    [entry] = [entry for entry in listed.json if entry["id"] == conversation.name]
    assert (entry["title"], entry["events"]) == ("Count to forty, please.", 9)


@pytest.mark.long
async def test_a_damaged_object_is_named_and_the_rest_is_shown(
    conversation: RecordedConversation, store: S3Store
) -> None:
    """The test comes last: it damages the recorded conversation."""
    prefix = conversation_prefix("local", conversation.name)
    await store.replace(f"{prefix}{event_key(conversation.name, 4)}", b"{")
    text, lines = await asyncio.gather(
        conversation.alone("show", conversation.name),
        conversation.alone("show", conversation.name, "-ojsonl"),
    )
    assert (text.code, lines.code) == (1, 1)
    assert "The object of seq 4 is damaged: restore" in text.out
    assert "That is all." in text.out
    assert [line["seq"] for line in lines.lines] == list(range(9))
    assert lines.lines[4]["error"]["code"] == "damaged"
    async with conversation.alone.start("watch", conversation.name) as watch:
        await wait_for_line(watch.stdout, "seq 4 is damaged")
        await wait_for_line(watch.stdout, "That is all.")
        ended = await interrupt(watch)
    assert (ended.code, ended.err) == (130, "")
