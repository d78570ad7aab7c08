"""What a person sees while a stack starts."""

import asyncio
from pathlib import Path

import pytest

from perdure.embedded.progress import WorkerLog, show_progress

STARTED = "2026-11-23 12:00:02,000 INFO worker 7 polls 'perdure'\n"


def warning(text: str) -> str:
    return f"2026-11-23 12:00:01,000 WARNING {text}\n"


async def follow(path: Path, *texts: str) -> tuple[list[str], list[str], bool]:
    """Write the texts to the log one after the other; return what was said, and readiness."""
    reported: list[str] = []
    progress: list[str] = []
    path.touch()
    log = WorkerLog(path, reported.append, progress.append)
    task = asyncio.create_task(log.follow())
    for text in texts:
        with path.open("a") as file:
            file.write(text)
        await asyncio.sleep(0.3)
    task.cancel()
    return reported, progress, log.ready.is_set()


async def test_warnings_of_the_workers_start_are_reported_and_no_later_ones(tmp_path: Path) -> None:
    reported, _, ready = await follow(
        tmp_path / "worker.log",
        "2026-11-23 12:00:00,000 INFO some news\n" + warning("no sandbox works"),
        STARTED,
        warning("a call waits for the store"),
    )
    assert reported == ["The worker says: no sandbox works"]
    assert ready


async def test_a_line_that_is_written_in_two_pieces_is_read_once(tmp_path: Path) -> None:
    line = warning("half and half")
    reported, _, ready = await follow(tmp_path / "worker.log", line[:40], line[40:])
    assert reported == ["The worker says: half and half"]
    assert not ready


async def test_the_loading_of_libraries_is_said(tmp_path: Path) -> None:
    line = "2026-11-23 12:00:03,000 INFO loading the model libraries (litellm), some seconds\n"
    _, progress, _ = await follow(tmp_path / "worker.log", STARTED, line)
    assert progress == ["The worker is loading the model libraries (litellm), some seconds"]


@pytest.mark.long
async def test_what_takes_long_is_said_again_and_again() -> None:
    lines: list[str] = []
    async with show_progress("It starts", lines.append):
        await asyncio.sleep(6)
    assert len(lines) == 2
    assert all(line.startswith("It starts (") for line in lines)
