"""`perdure export`: with the store alone, no Temporal and no worker."""

import asyncio
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from perdure.cli.commands.export import is_folder
from perdure.errors import Invalid
from perdure.events.event import AnyEvent
from perdure.exports.formats import FORMATS
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.log.event_log import EventLog
from perdure.storage.s3 import S3Store
from tests.builders import ORIGIN, agent, opened_event, prompt, user
from tests.cli.command import Perdure

FORMATS_BY_NAME = {made.name: made for made in FORMATS}


@dataclass(frozen=True)
class RecordedConversations:
    """Two conversations that took place, and a command with nothing but their store."""

    first: str
    second: str
    alone: Perdure


@pytest_asyncio.fixture
async def conversations(configured: Perdure, store: S3Store) -> RecordedConversations:
    names = (str(uuid4()), str(uuid4()))
    for name, words in zip(names, ("One.", "Two."), strict=True):
        await record_conversation(store, name, words)
    return RecordedConversations(*names, configured.with_env(TEMPORAL_ADDRESS="127.0.0.1:1"))


async def record_conversation(store: S3Store, name: str, text: str) -> None:
    result: list[AnyEvent] = [opened_event(), prompt(), user(text), agent("That is all.")]
    await EventLog(store, "local", name).append(result, base=0, origin=ORIGIN)


@pytest.mark.long
async def test_a_file_has_a_line_for_each_conversation(
    conversations: RecordedConversations,
) -> None:
    both = await conversations.alone(
        "export", conversations.first, conversations.second, "--format", "results"
    )
    assert (both.code, both.err) == (0, "")
    assert [doc["messages"][1]["content"] for doc in both.lines] == ["One.", "Two."]


@pytest.mark.long
async def test_a_folder_gets_a_file_or_a_new_folder_for_each_conversation(
    conversations: RecordedConversations, tmp_path: Path
) -> None:
    logs, theirs = tmp_path / "logs", tmp_path / "theirs"
    to_theirs = ("export", conversations.first, "--format", "openhands", "--output", f"{theirs}")
    done = await asyncio.gather(
        conversations.alone(
            "export",
            conversations.first,
            conversations.second,
            "--format",
            "inspect",
            "--output",
            f"{logs}",
        ),
        conversations.alone(*to_theirs),
    )
    assert [(item.code, item.out, item.err) for item in done] == [(0, "", "")] * 2
    names = {f"{conversations.first}.eval", f"{conversations.second}.eval"}
    assert {file.name for file in logs.iterdir()} == names
    assert all(zipfile.is_zipfile(file) for file in logs.iterdir())
    state = json.loads(
        (theirs / conversations.first.replace("-", "") / "base_state.json").read_text()
    )
    assert state["id"] == conversations.first
    again = await conversations.alone(*to_theirs)
    assert again.code == 4
    assert "is there already" in again.err


@pytest.mark.long
async def test_a_damaged_log_is_named_and_the_rest_is_exported(
    conversations: RecordedConversations, store: S3Store, tmp_path: Path
) -> None:
    key = conversation_prefix("local", conversations.second) + event_key(conversations.second, 1)
    await store.replace(key, b"?")
    made = tmp_path / "made.json"
    result = await conversations.alone(
        "export", conversations.second, "--format", "atif", "--output", f"{made}"
    )
    assert result.code == 1
    assert f"{conversations.second}: The object of seq 1 is damaged" in result.err
    assert json.loads(made.read_text())["notes"] == "These events cannot be read: 1."
    assert list(tmp_path.iterdir()) == [made]


@pytest.mark.long
async def test_an_unknown_conversation_stops_the_whole_export(
    conversations: RecordedConversations, tmp_path: Path
) -> None:
    both, folder_path = (conversations.first, str(uuid4())), tmp_path / "place"
    result = await conversations.alone(
        "export", *both, "--format", "raw", "--output", f"{folder_path}"
    )
    assert result.code == 3
    assert not folder_path.exists()


@pytest.mark.parametrize(
    ("name", "output", "count", "folder"),
    [
        ("results", "-", 2, False),
        ("results", "all.jsonl", 2, False),
        ("results", "all/", 2, True),
        ("html", "page.html", 1, False),
        ("html", "pages", 2, True),
        ("openhands", "theirs", 1, True),
    ],
)
def test_the_format_and_the_count_decide_whether_the_output_is_a_folder(
    name: str, output: str, count: int, folder: bool
) -> None:
    assert is_folder(FORMATS_BY_NAME[name], output, count) == folder


@pytest.mark.parametrize(("name", "count"), [("openhands", 1), ("html", 2), ("raw", 2)])
def test_a_format_that_cannot_go_to_stdout_asks_for_a_folder(name: str, count: int) -> None:
    with pytest.raises(Invalid) as refused:
        is_folder(FORMATS_BY_NAME[name], "-", count)
    assert "--output FOLDER" in refused.value.hint
