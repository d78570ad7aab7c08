"""One command in one shell of its own, of which nothing is left once it is over."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeAlias

from tools.tool import ToolFailed

Supervisor: TypeAlias = "subprocess.Popen[bytes]"

SUPERVISOR = Path(__file__).with_name("supervisor.py")
SHELL = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"

LONGEST_COMMAND = 128 * 1024 - 1
"""Bytes; Linux takes no longer argument (MAX_ARG_STRLEN, which counts the NUL)."""

MARK = "PERDURE_COMMAND"
"""A variable in a command's environment by which its processes can be told."""

PATIENCE = 5.0
"""Seconds for what is left in a pipe to arrive, and for killed processes to be gone."""

_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Ended:
    """How a command ended: `exit_code` is 128 + N after signal N, and -1 where it was stopped.

    `background` counts processes which it left running and that were ended with it; `survivors`
    are the ids of those that could not be ended, such as another user's.
    """

    exit_code: int
    timed_out: bool = False
    background: int = 0
    survivors: tuple[int, ...] = ()


async def execute(
    command: str,
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109 - the command's, and it is told from the caller's own
    take: Callable[[bytes], None],
) -> Ended:
    """Run `command` in `directory`, hand its output to `take` as it comes, and say how it ended.

    It is stopped, with every process that came of it, after `timeout` seconds, when the caller
    is cancelled, when `take` raises, and when this program dies in any way. Raises ToolFailed
    where it could not be started.
    """
    if sys.platform != "linux":
        raise ToolFailed("Commands can only be run on Linux: start the worker there.")
    mark = uuid.uuid4().hex
    process = _start(command, directory, {**environment, MARK: mark})
    following = asyncio.create_task(_follow(process, mark, take))
    try:
        done, _ = await asyncio.wait({following}, timeout=timeout)
    finally:
        _stop(process)
        await asyncio.wait({following})
    ended = following.result()
    return ended if done else replace(ended, exit_code=-1, timed_out=True)


def _start(command: str, directory: Path, environment: Mapping[str, str]) -> Supervisor:
    # Not asyncio's own kind of process: that is killed when it is forgotten, and this one has to
    # live until it has ended all the others.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", SUPERVISOR, SHELL, command],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory,
        env=environment,
        start_new_session=True,
    )


def _stop(process: Supervisor) -> None:
    assert process.stdin is not None
    process.stdin.close()


async def _follow(process: Supervisor, mark: str, take: Callable[[bytes], None]) -> Ended:
    """Read until the supervisor is gone, and everybody else with it."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.create_task(_read(process.stdout, take))
    reading.add_done_callback(lambda _: _stop(process))
    with contextlib.suppress(BrokenPipeError):  # it died at once, and its report says why
        process.stdin.write(b"\n")
    report = bytearray()
    await _read(process.stderr, report.extend)
    code = process.wait()
    ended = _told(report.decode(errors="replace")) if code >= 0 else await _unsupervised(mark, code)
    await asyncio.wait({reading}, timeout=PATIENCE)
    if reading.cancel():  # a survivor holds the pipe
        return ended
    await reading
    return ended


async def _read(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while chunk := await reader.read(_CHUNK):
            take(chunk)
    finally:
        transport.close()


def _told(report: str) -> Ended:
    last = report.strip().rpartition("\n")[2]
    try:
        code, background, *survivors = map(int, last.split())
    except ValueError as error:
        raise ToolFailed(f"The command could not be started: {last}.") from error
    return Ended(code, background=background, survivors=tuple(survivors))


async def _unsupervised(mark: str, code: int) -> Ended:
    """The command killed its supervisor: find the rest by their mark and end them from here."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (left := _marked(mark)) and asyncio.get_running_loop().time() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):  # ended since it was listed
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.01)
    return Ended(128 - code, survivors=left)


def _marked(mark: str) -> tuple[int, ...]:
    wanted = f"{MARK}={mark}".encode()
    return tuple(
        int(process.name)
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and wanted in _environment_of(process)
    )


def _environment_of(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or gone
        return []
