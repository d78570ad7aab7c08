"""Setting up the workspace of a sample."""

import asyncio
import base64
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.activities.batch.command import CommandContext
from perdure.activities.batch.set_up import SetUpFailed, set_up
from perdure.evaluation.sample import Sample, build_sample
from perdure.sandbox.sandbox import UNCONFINED
from tests.sandbox.running import set_up_sandbox
from tests.tools.processes import find_processes, wait_until


def sample(setup: str | None = None, files: dict[str, Any] | None = None) -> Sample:
    return build_sample({"id": "one", "input": "Go.", "files": files or {}, "setup": setup})


async def run_set_up(
    folder: Path,
    setup: str | None = None,
    files: dict[str, Any] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    seconds: float = 60.0,
) -> str:
    context = CommandContext(folder, UNCONFINED, network=True)
    return await set_up(sample(setup, files), context, tell, seconds)


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
    assert await run_set_up(folder, "./tool", files) == "it runs\n"
    assert (folder / "a/b/notes.txt").read_text() == "Grüße\n"
    assert (folder / "raw.bin").read_bytes() == raw
    assert not os.access(folder / "raw.bin", os.X_OK)


async def test_the_command_sees_the_files_and_nothing_of_the_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_OF_THE_WORKER", "open sesame")
    output = await run_set_up(
        folder, "cat in.txt; pwd; env; read line || echo no input", {"in.txt": "x"}
    )
    assert output.startswith(f"x{folder}\n")
    assert output.endswith("no input\n")
    assert "sesame" not in output


async def test_a_repeated_attempt_begins_afresh(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    inode = folder.stat().st_ino
    await run_set_up(
        folder, "mkdir -p deep/er && touch deep/er/x .hidden && chmod 0 deep && touch left"
    )
    (folder / "a").symlink_to(outside)
    (folder / "b").symlink_to(outside / "kept")
    await run_set_up(folder, None, {"a/kept": "new", "b": "new too"})
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
    assert (folder / "a/kept").read_text() == "new"
    assert (outside / "kept").read_text() == "kept"
    assert folder.stat().st_ino == inode


async def test_mounts_survive_the_set_up(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lists a blank in a name as a number."""
    (folder / "way/my data").mkdir(parents=True)
    (folder / "way/my data/large.bin").write_text("large")
    (folder / "way/left").write_text("left")
    listed = tmp_path / "mountinfo"
    listed.write_text(
        f"36 35 98:0 / {folder}/way/my\\040data rw - ext4 /dev/sda rw\n22 1 8:1 / / rw - ext4 x rw"
    )
    monkeypatch.setattr("perdure.activities.batch.set_up.MOUNTINFO", listed)
    await run_set_up(folder, None, {"way/new": "new"})
    assert (folder / "way/my data/large.bin").read_text() == "large"
    assert sorted(path.name for path in (folder / "way").iterdir()) == ["my data", "new"]


async def test_no_file_is_written_through_a_link_that_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "mounted").mkdir()
    (folder / "mounted/link").symlink_to(outside)
    listed = tmp_path / "mountinfo"
    listed.write_text(f"36 35 98:0 / {folder}/mounted rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr("perdure.activities.batch.set_up.MOUNTINFO", listed)
    with pytest.raises(SetUpFailed, match=r"'mounted/link/x' of the sample 'one'.*another name"):
        await run_set_up(folder, None, {"mounted/link/x": "new"})
    assert list(outside.iterdir()) == []


async def test_conflicting_file_names_are_an_error(folder: Path) -> None:
    with pytest.raises(SetUpFailed, match=r"'a/b' of the sample 'one' cannot be written"):
        await run_set_up(folder, None, {"a": "x", "a/b": "y"})
    with pytest.raises(SetUpFailed, match="File name too long"):
        await run_set_up(folder, None, {"n" * 300: "x"})


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
async def test_a_failed_setup_command_is_reported(folder: Path, setup: str, why: str) -> None:
    with pytest.raises(SetUpFailed, match=rf"(?s)The `setup` of the sample 'one'.*{why}"):
        await run_set_up(folder, setup)


@pytest.mark.long
async def test_a_timeout_ends_the_setup_command_and_its_children(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    stays = f"echo waiting; setsid bash -c 'exec -a {token} sleep 600' & exec -a {token} sleep 600"
    with pytest.raises(SetUpFailed, match=r"took over 3 seconds: mend"):
        await run_set_up(folder, stays, seconds=3)
    assert not find_processes(token)


async def test_background_processes_of_a_setup_command_end(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    await run_set_up(folder, f"setsid bash -c 'exec -a {token} sleep 600' & echo done")
    assert not find_processes(token)


async def test_after_a_cancellation_no_process_writes_to_the_folder(folder: Path) -> None:
    token = f"token{uuid.uuid4().hex}"
    chunks: list[str] = []
    work = f"echo begun; (exec -a {token} sleep 600) & exec -a {token} sleep 600"
    task = asyncio.create_task(run_set_up(folder, work, tell=chunks.append))
    await wait_until(lambda: find_processes(token) and chunks)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not find_processes(token)
    assert chunks[0] == "begun\n"


@pytest.mark.parametrize("name", ["bubblewrap", "uid"])
async def test_in_a_sandbox_the_command_may_write_there_and_nowhere_else(
    open_path: Path, name: str
) -> None:
    tried = set_up_sandbox(name)
    if tried.sandbox is None:
        pytest.skip(tried.why)
    folder, beside = open_path / "workspace", open_path / "beside"
    folder.mkdir()
    beside.mkdir()
    copy_sample = sample(
        f"cp in.txt out.txt; echo >in.txt; echo x >{beside}/x || echo no", {"in.txt": "x"}
    )
    output = await set_up(copy_sample, CommandContext(folder, tried.sandbox), lambda _: None, 60.0)
    assert output.endswith("no\n")
    assert (folder / "out.txt").read_text() == "x"
    assert (folder / "in.txt").read_text() == "\n"
    assert list(beside.iterdir()) == []
