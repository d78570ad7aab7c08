"""Child processes, with their output and their pid in files, and whether they answer."""

import asyncio
import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.folder import write_private
from perdure.errors import MissingExtra

POLL_INTERVAL = 0.02
TAIL_LINES = 40

# A second interpreter runs these, as the settings survive an exec, and Python code between fork and
# exec could hang for ever in a process with threads. 1 is PR_SET_PDEATHSIG, 15 is SIGTERM.
DIE_WITH_PARENT = """
import ctypes
ctypes.CDLL(None).prctl(1, 15)
os.getppid() == int(sys.argv[1]) or sys.exit(1)
"""

NICENESS = 5
"""How much lower the priority of a stack's Temporal and worker is than that of commands, as nice(1)
counts: each gets a quarter of a core that a command wants as well."""

# Linux shares the processor among sessions where it has autogroups, and a nice value counts in the
# session alone. Of users other than root it takes one value in 0.1 s, and refuses the next with
# EAGAIN, a BlockingIOError: it is asked again, for a second. Source: sched(7), and
# kernel/sched/autogroup.c in Linux.
LOWER_PRIORITY = f"""
import time
os.nice({NICENESS})
for _ in range(20):
    try:
        with open("/proc/self/autogroup", "w") as niceness:
            niceness.write("{NICENESS}")
    except BlockingIOError:
        time.sleep(0.05)
    except OSError:
        break
    else:
        break
"""


@dataclass(frozen=True)
class ChildProcess:
    """A running program; `log` is the file of its output."""

    name: str
    log: Path
    _process: asyncio.subprocess.Process

    @classmethod
    async def start(
        cls,
        name: str,
        command: list[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        low_priority: bool = False,
    ) -> Self:
        """Start `command`, whose first word is a path; its output is appended to `log`.

        The program has its own session, so that ^C in the terminal reaches only us, and on Linux
        it gets SIGTERM when we die. With `low_priority` others come first where the processor is
        taken. A program left over from an earlier start with this log is ended first. Raises
        ProcessFailed if it cannot be run.
        """
        if shutil.which(command[0]) is None:
            raise ProcessFailed(f"{name} cannot be run: {command[0]} is not a program.")
        await end_predecessor(_pidfile_path(log))
        with log.open("ab") as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *build_child_command(command, low_priority),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessFailed(f"{name} cannot be run: {error}") from error
        _write_pidfile(_pidfile_path(log), process.pid)
        return cls(name, log, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait_until(self, ready: Callable[[], Awaitable[bool]], max_wait: float = 60) -> None:
        """Wait until `ready()` is true, for at most `max_wait` seconds.

        Otherwise ends the program and raises ProcessFailed.
        """
        try:
            async with asyncio.timeout(max_wait):
                while not await ready():
                    if (code := self._process.returncode) is not None:
                        raise self._build_error(f"ended at its start ({describe_exit(code)})")
                    await asyncio.sleep(POLL_INTERVAL)
        except TimeoutError as error:
            await self.stop()
            raise self._build_error(f"was not ready within {max_wait:g} s") from error
        except BaseException:
            await self.stop()
            raise

    def _build_error(self, event: str) -> ProcessFailed:
        lines = self.read_last_lines(TAIL_LINES)
        return ProcessFailed("\n".join([f"{self.name} {event}; the end of {self.log}:", *lines]))

    def read_last_lines(self, count: int) -> list[str]:
        """Read the last lines of the log that say anything."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return [line for line in text.splitlines() if line.strip()][-count:]

    async def wait(self) -> int:
        """Wait for the end; return the exit code, or the negative number of the signal."""
        return await self._process.wait()

    def kill(self) -> None:
        """Send SIGKILL, if the program runs."""
        if self._process.returncode is None:
            self._process.kill()

    async def stop(self, grace: float = 5.0) -> None:
        """End the program: SIGTERM, and SIGKILL after `grace` seconds."""
        if self._process.returncode is None:
            await _terminate(self._process.send_signal, self._process.wait, grace)
        _pidfile_path(self.log).unlink(missing_ok=True)


async def _terminate(
    send_signal: Callable[[int], None], wait: Callable[[], Awaitable[object]], grace: float
) -> None:
    send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(grace):
            await wait()
    except TimeoutError:
        send_signal(signal.SIGKILL)
        await wait()


class ProcessRecord(BaseModel):
    """A process; `started` distinguishes it from a later one with the same `pid`."""

    pid: int
    started: str


async def end_predecessor(path: Path, grace: float = 5.0) -> None:
    """End the process that the pid file `path` names, if a crash left it running."""
    if (record := _find_running(path)) is not None:
        await _terminate(partial(os.kill, record.pid), partial(_wait_gone, record), grace)


def _pidfile_path(log: Path) -> Path:
    return log.with_suffix(".pid")


def _write_pidfile(path: Path, pid: int) -> None:
    if (started := _start_time(pid)) is not None:
        write_private(path, ProcessRecord(pid=pid, started=started).model_dump_json())


def _find_running(path: Path) -> ProcessRecord | None:
    record = ProcessRecord.model_validate_json(path.read_bytes()) if path.exists() else None
    return record if record and _is_running(record) else None


async def _wait_gone(record: ProcessRecord) -> None:
    while _is_running(record):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
        await asyncio.sleep(POLL_INTERVAL)


def _is_running(record: ProcessRecord) -> bool:
    return _start_time(record.pid) == record.started


def _start_time(pid: int) -> str | None:
    """Return the start time of the process `pid`, or None if there is none."""
    return _start_time_from_proc(pid) if sys.platform == "linux" else _start_time_from_ps(pid)


def _start_time_from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name may contain spaces. After it: field 3 is the state, field 22 the ticks since boot.
    fields = stat.rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if fields[0] == "Z" else f"{boot} {fields[19]}"


def _start_time_from_ps(pid: int) -> str | None:
    listing = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    english = {**os.environ, "LC_ALL": "C"}
    line = subprocess.run(listing, capture_output=True, text=True, env=english).stdout
    state, _, started = line.strip().partition(" ")
    return None if state.startswith("Z") or not started else started.strip()


def describe_exit(code: int) -> str:
    """Describe an exit code of `ChildProcess.wait`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def find_program(name: str) -> str:
    """Return the path of a program of the extra `dev`. Raises MissingExtra."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise MissingExtra(f"{path} is missing: the embedded stack", "dev")
    return str(path)


def build_child_command(command: list[str], low_priority: bool = False) -> list[str]:
    """Build the command of a child that gets SIGTERM when this process dies; only on Linux.

    With `low_priority` the child has a lower priority than this process.
    """
    settings = LOWER_PRIORITY if low_priority else ""
    # The kernel watches the thread that started the child; only the main thread lives as long as
    # the process.
    if sys.platform == "linux" and threading.current_thread() is threading.main_thread():
        settings += DIE_WITH_PARENT
    if not settings:
        return command
    code = f"import os, sys\n{settings}\nos.execv(sys.argv[2], sys.argv[2:])"
    return [sys.executable, "-ISc", code, str(os.getpid()), *command]


async def is_listening(port: int) -> bool:
    """Tell whether a server accepts connections at 127.0.0.1:`port`."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def request_status(method: str, port: int, path: str) -> int | None:
    """Request a path of 127.0.0.1:`port`; return the HTTP status, or None without an answer."""
    return await asyncio.to_thread(_request_status, method, port, path)


def _request_status(method: str, port: int, path: str) -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
