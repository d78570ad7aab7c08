"""Child processes, with their output in a file, and the ports that they listen on."""

import asyncio
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import NoReturn, Self

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.pidfile import PROCESS_POLL_INTERVAL, end_predecessor, write_pidfile
from perdure.errors import MissingExtra

START_TIMEOUT = 60.0
TAIL_LINES = 40
PORT_RANGE = range(10_000, 32_768)

# A second interpreter runs this, as the setting survives an exec, and Python code between fork and
# exec could hang for ever in a process with threads. 1 is PR_SET_PDEATHSIG, 15 is SIGTERM.
DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class ChildProcess:
    """A running program; `log` is the file of its output."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(
        cls,
        name: str,
        command: list[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Self:
        """Start `command`, whose first word is a path; its output is appended to `log`.

        The program has its own session, so that ^C in the terminal reaches only us, and on Linux
        it gets SIGTERM when we die. A program left over from an earlier start with this log is
        ended first. Raises ProcessFailed if it cannot be run.
        """
        if shutil.which(command[0]) is None:
            raise ProcessFailed(f"{name} cannot be run: {command[0]} is not a program.")
        await end_predecessor(_pidfile_path(log))
        with log.open("ab") as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *_die_with_parent(command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessFailed(f"{name} cannot be run: {error}") from error
        write_pidfile(_pidfile_path(log), process.pid)
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait_until(
        self, ready: Callable[[], Awaitable[bool]], max_wait: float = START_TIMEOUT
    ) -> None:
        """Wait until `ready()` is true, for at most `max_wait` seconds.

        Otherwise ends the program and raises ProcessFailed.
        """
        try:
            async with asyncio.timeout(max_wait):
                await self._poll_until(ready)
        except TimeoutError as error:
            await self.stop()
            raise self._build_error(f"was not ready within {max_wait:g} s") from error
        except BaseException:
            await self.stop()
            raise

    async def _poll_until(self, ready: Callable[[], Awaitable[bool]]) -> None:
        while not await ready():
            code = self._process.returncode
            if code is not None:
                raise self._build_error(f"ended at its start ({describe_exit(code)})")
            await asyncio.sleep(PROCESS_POLL_INTERVAL)

    def _build_error(self, event: str) -> ProcessFailed:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return ProcessFailed("\n".join([f"{self.name} {event}; the end of {self.log}:", *lines]))

    async def wait(self) -> int:
        """Wait for the end; return the exit code, or the negative number of the signal."""
        return await self._process.wait()

    async def watch(self) -> NoReturn:
        """Wait, and raise ProcessFailed when the program has ended."""
        code = await self._process.wait()
        raise self._build_error(f"ended ({describe_exit(code)})")

    async def stop(self, grace: float = 5.0) -> None:
        """End the program: SIGTERM, and SIGKILL after `grace` seconds."""
        if self._process.returncode is None:
            await self._terminate(grace)
        _pidfile_path(self.log).unlink(missing_ok=True)

    async def _terminate(self, grace: float) -> None:
        self._process.terminate()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def describe_exit(code: int) -> str:
    """Describe an exit code of `ChildProcess.wait`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def find_program(name: str) -> str:
    """Return the path of a program of the extra `dev`. Raises MissingExtra."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise MissingExtra(f"{path} is missing: the embedded stack", "dev")
    return str(path)


def find_free_ports(count: int, span: int = 0) -> list[int]:
    """Find `count` free TCP ports, each of which has a free one `span` above it.

    They lie below the range of outgoing connections, so that none is taken meanwhile.
    """
    candidates = (port for port in random.sample(PORT_RANGE, len(PORT_RANGE)) if _is_free(port))
    return list(islice((port for port in candidates if _is_free(port + span)), count))


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind(("", port))
        except OSError:
            return False
    return True


def _pidfile_path(log: Path) -> Path:
    return log.with_suffix(".pid")


def _die_with_parent(command: list[str]) -> list[str]:
    # The kernel watches the thread that started the child; only the main thread lives as long as
    # the process.
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return command
    return [sys.executable, "-ISc", DIE_WITH_PARENT, str(os.getpid()), *command]


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
