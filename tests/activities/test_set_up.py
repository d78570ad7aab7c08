"""The workspace of a sample: its files, and what its command makes of them."""

import asyncio
import base64
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from activities.set_up import SetUpFailed, set_up
from evaluation.sample import Sample, sample_of
from sandbox.sandbox import NONE
from tests.sandbox.running import column
from tests.tools.processes import alive, until


def sample(setup: str | None = None, files: dict[str, Any] | None = None) -> Sample:
    return sample_of({"id": "one", "input": "Go.", "files": files or {}, "setup": setup})


async def made(
    folder: Path,
    setup: str | None = None,
    files: dict[str, Any] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    seconds: float = 60.0,
) -> str:
    return await set_up(sample(setup, files), folder, NONE, tell, network=True, timeout=seconds)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


async def test_files_are_there_and_programs_can_be_run(folder: Path) -> None:
    raw = bytes(range(256))
    files = {
        "a/b/notes.txt": "Grüße\n",
        "raw.bin": {"base64": base64.b64encode(raw).decode()},
        "tool": "#!/bin/sh\necho it runs\n",
    }
    assert await made(folder, "./tool", files) == "it runs\n"
    assert (folder / "a/b/notes.txt").read_text() == "Grüße\n"
    assert (folder / "raw.bin").read_bytes() == raw
    assert not os.access(folder / "raw.bin", os.X_OK)


async def test_the_command_sees_the_files_and_nothing_of_the_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_OF_THE_WORKER", "open sesame")
    output = await made(folder, "cat in.txt; pwd; env; read line || echo no input", {"in.txt": "x"})
    assert output.startswith(f"x{folder}\n")
    assert output.endswith("no input\n")
    assert "sesame" not in output


async def test_a_repeated_attempt_begins_afresh(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    inode = folder.stat().st_ino
    await made(folder, "mkdir -p deep/er && touch deep/er/x .hidden && chmod 0 deep && touch left")
    (folder / "a").symlink_to(outside)
    (folder / "b").symlink_to(outside / "kept")
    await made(folder, None, {"a/kept": "new", "b": "new too"})
    assert sorted(one.name for one in folder.iterdir()) == ["a", "b"]
    assert (folder / "a/kept").read_text() == "new"
    assert (outside / "kept").read_text() == "kept"
    assert folder.stat().st_ino == inode


async def test_what_is_mounted_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel lists it: a blank in a name is written as a number."""
    (folder / "way/my data").mkdir(parents=True)
    (folder / "way/my data/large.bin").write_text("large")
    (folder / "way/left").write_text("left")
    listed = tmp_path / "mountinfo"
    listed.write_text(
        f"36 35 98:0 / {folder}/way/my\\040data rw - ext4 /dev/sda rw\n22 1 8:1 / / rw - ext4 x rw"
    )
    monkeypatch.setattr("activities.set_up.MOUNTS", listed)
    await made(folder, None, {"way/new": "new"})
    assert (folder / "way/my data/large.bin").read_text() == "large"
    assert sorted(one.name for one in (folder / "way").iterdir()) == ["my data", "new"]


async def test_no_file_is_written_through_a_link_that_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "mounted").mkdir()
    (folder / "mounted/link").symlink_to(outside)
    listed = tmp_path / "mountinfo"
    listed.write_text(f"36 35 98:0 / {folder}/mounted rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr("activities.set_up.MOUNTS", listed)
    with pytest.raises(SetUpFailed, match=r"'mounted/link/x' of the sample 'one'.*another name"):
        await made(folder, None, {"mounted/link/x": "new"})
    assert list(outside.iterdir()) == []


async def test_names_that_stand_in_each_others_way_are_told(folder: Path) -> None:
    with pytest.raises(SetUpFailed, match=r"'a/b' of the sample 'one' cannot be written"):
        await made(folder, None, {"a": "x", "a/b": "y"})
    with pytest.raises(SetUpFailed, match="File name too long"):
        await made(folder, None, {"n" * 300: "x"})


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ("echo first; echo the reason >&2; exit 3", r"exit code 3.*: first\nthe reason$"),
        ("kill -9 $$", "signal 9"),
        ("no-such-program", "exit code 127.*no-such-program"),
        ("echo \0", "exit code 126.*NUL"),
        ("false", "exit code 1: .* It printed nothing"),
        (": " + "x" * 140_000, "exit code 126.*Argument list too long"),
        ("yes why | head -c 1000000; exit 1", "exit code 1: .{2000,2200}$"),
    ],
)
async def test_a_command_that_fails_is_told_of(folder: Path, setup: str, why: str) -> None:
    with pytest.raises(SetUpFailed, match=rf"(?s)The `setup` of the sample 'one'.*{why}"):
        await made(folder, setup)


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    stays = f"echo waiting; setsid bash -c 'exec -a {token} sleep 600' & exec -a {token} sleep 600"
    with pytest.raises(SetUpFailed, match=r"took over 3 seconds: mend"):
        await made(folder, stays, seconds=3)
    assert not alive(token)


async def test_what_is_left_in_the_background_ends(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    await made(folder, f"setsid bash -c 'exec -a {token} sleep 600' & echo done")
    assert not alive(token)


async def test_who_cancels_it_has_the_folder_for_himself(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    told: list[str] = []
    work = f"echo begun; (exec -a {token} sleep 600) & exec -a {token} sleep 600"
    task = asyncio.create_task(made(folder, work, tell=told.append))
    await until(lambda: alive(token) and told)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(token)
    assert told[0] == "begun\n"


@pytest.mark.parametrize("name", ["bubblewrap", "uid"])
async def test_in_a_sandbox_the_command_may_write_there_and_nowhere_else(
    open_path: Path, name: str
) -> None:
    tried = column(name)
    if tried.sandbox is None:
        pytest.skip(tried.why)
    folder, beside = open_path / "workspace", open_path / "beside"
    folder.mkdir()
    beside.mkdir()
    one = sample(f"cp in.txt out.txt; echo >in.txt; echo x >{beside}/x || echo no", {"in.txt": "x"})
    output = await set_up(one, folder, tried.sandbox, lambda _: None, network=False)
    assert output.endswith("no\n")
    assert (folder / "out.txt").read_text() == "x"
    assert (folder / "in.txt").read_text() == "\n"
    assert list(beside.iterdir()) == []
