"""`perdure export`: with the store alone, no Temporal and no worker."""

import asyncio
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from cli.commands.export import is_folder
from client.errors import Invalid
from events.event import AnyEvent
from exports.formats import FORMATS
from storage.keys import conversation_prefix, event_key
from storage.log import EventLog
from storage.s3 import S3Store
from tests.builders import ORIGIN, agent, opened, prompt, user
from tests.cli.command import Perdure

MADE = {made.name: made for made in FORMATS}


@dataclass(frozen=True)
class Past:
    """Two conversations that took place, and a command with nothing but their store."""

    one: str
    other: str
    alone: Perdure


@pytest_asyncio.fixture
async def past(configured: Perdure, store: S3Store) -> Past:
    names = (str(uuid4()), str(uuid4()))
    for name, words in zip(names, ("One.", "Two."), strict=True):
        await written(store, name, words)
    return Past(*names, configured.where(TEMPORAL_ADDRESS="127.0.0.1:1"))


async def written(store: S3Store, name: str, words: str) -> None:
    told: list[AnyEvent] = [opened(), prompt(), user(words), agent("That is all.")]
    await EventLog(store, "local", name).append(told, base=0, origin=ORIGIN)


@pytest.mark.long
async def test_many_are_a_line_each(past: Past) -> None:
    both = await past.alone("export", past.one, past.other, "--format", "results")
    assert (both.code, both.err) == (0, "")
    assert [doc["messages"][1]["content"] for doc in both.lines] == ["One.", "Two."]


@pytest.mark.long
async def test_a_folder_gets_a_file_each_or_a_folder_once(past: Past, tmp_path: Path) -> None:
    logs, theirs = tmp_path / "logs", tmp_path / "theirs"
    to_theirs = ("export", past.one, "--format", "openhands", "--output", f"{theirs}")
    done = await asyncio.gather(
        past.alone("export", past.one, past.other, "--format", "inspect", "--output", f"{logs}"),
        past.alone(*to_theirs),
    )
    assert [(one.code, one.out, one.err) for one in done] == [(0, "", "")] * 2
    names = {f"{past.one}.eval", f"{past.other}.eval"}
    assert {file.name for file in logs.iterdir()} == names
    assert all(zipfile.is_zipfile(file) for file in logs.iterdir())
    state = json.loads((theirs / past.one.replace("-", "") / "base_state.json").read_text())
    assert state["id"] == past.one
    again = await past.alone(*to_theirs)
    assert again.code == 4
    assert "is there already" in again.err


async def test_a_damaged_log_is_named_and_the_rest_is_exported(
    past: Past, store: S3Store, tmp_path: Path
) -> None:
    key = conversation_prefix("local", past.other) + event_key(past.other, 1)
    await store.replace(key, b"?")
    made = tmp_path / "made.json"
    told = await past.alone("export", past.other, "--format", "atif", "--output", f"{made}")
    assert told.code == 1
    assert f"{past.other}: The object of seq 1 is damaged" in told.err
    assert json.loads(made.read_text())["notes"] == "These events cannot be read: 1."
    assert list(tmp_path.iterdir()) == [made]


async def test_nothing_is_exported_where_one_is_not_there(past: Past, tmp_path: Path) -> None:
    both, place = (past.one, str(uuid4())), tmp_path / "place"
    told = await past.alone("export", *both, "--format", "raw", "--output", f"{place}")
    assert told.code == 3
    assert not place.exists()


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
def test_where_each_goes_follows_from_the_format_and_how_many_there_are(
    name: str, output: str, count: int, folder: bool
) -> None:
    assert is_folder(MADE[name], output, count) == folder


@pytest.mark.parametrize(("name", "count"), [("openhands", 1), ("html", 2), ("raw", 2)])
def test_what_does_not_go_to_stdout_says_where_to(name: str, count: int) -> None:
    with pytest.raises(Invalid) as refused:
        is_folder(MADE[name], "-", count)
    assert "--output FOLDER" in refused.value.hint
