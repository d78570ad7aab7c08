"""What the turns of a conversation changed, as lists and as diffs."""

import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.client.file_change import FileChange
from perdure.client.file_changes import (
    WorkspaceChanges,
    diff_files,
    list_file_changes,
    read_workspace_changes,
)
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Files, Origin
from perdure.storage.changes.record import (
    ChangedFile,
    ChangeRecord,
    FileVersion,
    write_record,
)
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.storage.snapshots.manifest import SnapshotCache
from perdure.storage.snapshots.take import take
from tests.builders import agent, opened_event, spec_event, user

ORIGIN = Origin(run="run", activity="1")


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(FileStore(tmp_path / "store"), "local", new_conversation_id())


def version(text: str | None) -> FileVersion | None:
    return None if text is None else FileVersion(text=text)


def changed(path: str, before: str | None, after: str | None) -> ChangedFile:
    return ChangedFile(path=path, before=version(before), after=version(after))


def conversation_of(log: EventLog) -> Any:
    return SimpleNamespace(log=log, changes=partial(read_workspace_changes, log))


async def write_log(log: EventLog) -> None:
    await log.append([opened_event(), spec_event(), user("Go.")], base=0, origin=ORIGIN)


async def snapshot(log: EventLog, folder: Path, last: str | None) -> str:
    prefix = conversation_prefix("local", log.conversation_id)
    key = await take(log.store, prefix, folder, last, SnapshotCache(), lambda _: set())
    assert key is not None
    return key


async def append_files(log: EventLog, key: str) -> int:
    files = Files(home="here", snapshot=key)
    base = await log.end()
    origin = Origin(run="run", activity=f"act {base}")
    await log.append([agent("done")], base=base, origin=origin, files=files)
    return base


async def test_snapshots_are_compared_from_the_slot_before_a_turn(
    log: EventLog, tmp_path: Path
) -> None:
    folder = tmp_path / "own/folder"
    folder.mkdir(parents=True)
    await write_log(log)
    (folder / "a.py").write_text("one\ntwo\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_bytes(b"1")
    first = await snapshot(log, folder, None)
    seq = await append_files(log, first)
    (folder / "a.py").write_text("one\n2\nthree")
    (folder / "bin").write_bytes(b"\0")
    (folder / "twin").hardlink_to(folder / "a.py")
    await append_files(log, await snapshot(log, folder, first))
    whole = await list_file_changes(conversation_of(log))
    last = await list_file_changes(conversation_of(log), after=seq)
    assert whole == [
        FileChange("a.py", "added", 3, 0),
        FileChange("bin", "added", None, None),
        FileChange("twin", "added", 3, 0),
    ]
    assert last == [
        FileChange("a.py", "changed", 2, 1),
        FileChange("bin", "added", None, None),
        FileChange("twin", "added", 3, 0),
    ]
    diff = await diff_files(conversation_of(log), after=seq)
    assert "-two\n+2\n+three\n\\ No newline at end of file\n" in diff
    assert "[added, binary]" in diff


async def test_the_records_of_several_turns_are_one_change_of_each_file(log: EventLog) -> None:
    await write_log(log)
    turns = [
        (5, [changed("a", "1\n", "2\n"), changed("made", None, "x\n"), changed("b", "1\n", "2\n")]),
        (12, [changed("a", "2\n", "3\n"), changed("made", "x\n", None)]),
        (20, [changed("b", "2\n", "1\n"), changed("c", "old\n", None)]),
    ]
    for first, files in turns:
        record = ChangeRecord(first=first, files=tuple(files))
        await write_record(log.store, "local", log.conversation_id, record)
    conversation = conversation_of(log)
    whole = [FileChange("a", "changed", 1, 1), FileChange("c", "removed", 0, 1)]
    assert await list_file_changes(conversation) == whole, "what was undone is no change"
    assert [change.path for change in await list_file_changes(conversation, 5)] == [
        *("a", "b", "c", "made")
    ]
    assert [change.path for change in await list_file_changes(conversation, 12)] == ["b", "c"]
    assert await list_file_changes(conversation, 20) == []


async def test_a_record_that_cannot_be_read_is_said_and_the_others_are_listed(
    log: EventLog,
) -> None:
    await write_log(log)
    prefix = conversation_prefix("local", log.conversation_id)
    await log.store.replace(f"{prefix}workspace/changes/000003", b"no record")
    record = ChangeRecord(first=4, files=(changed("a", None, "1\n"),))
    await write_record(log.store, "local", log.conversation_id, record)
    changes = await read_workspace_changes(log)
    assert [file.path for file in changes.files] == ["a"]
    assert changes.faults == [
        "The changes of a turn are not recorded: it is no record of a version that is known"
    ]


def test_git_applies_the_diff(tmp_path: Path) -> None:
    files = (
        changed("end", "a\nb", "a\nc"),
        changed("gone", "x\n", None),
        changed("made/new", None, "1\r\n2\x0b3\n"),
        changed("text", "1\n2\n3\n", "1\n3\n4\n"),
    )
    for file in files:
        if file.before is not None:
            (tmp_path / file.path).write_text(file.before.text or "")
    diff = WorkspaceChanges(files).diff()
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "-"], cwd=tmp_path, input=diff.encode(), check=True
    )
    for file in files:
        path = tmp_path / file.path
        assert path.exists() == (file.after is not None)
        if file.after is not None:
            assert path.read_bytes().decode() == file.after.text


def test_a_long_diff_ends_with_a_line_that_says_so() -> None:
    large = "".join(f"{number}\n" for number in range(30_000))
    files = [changed(f"{number:02}", None, large) for number in range(10)]
    diff = WorkspaceChanges(files).diff()
    assert 500_000 < len(diff) < 1_200_000
    assert diff.endswith("files: too long to show]\n")


def test_a_file_of_very_many_lines_is_named_and_not_compared() -> None:
    file = changed("large", "1\n" * 30_000, "2\n" * 30_000)
    assert WorkspaceChanges([file]).summarize() == [FileChange("large", "changed", None, None)]
    assert "[changed, too large to compare]" in WorkspaceChanges([file]).diff()
