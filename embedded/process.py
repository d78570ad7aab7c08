"""A child process of ours: started with its output in a file, awaited, and ended by its own pid."""

import asyncio
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

from embedded.errors import ProcessFailed
from embedded.pidfile import end_predecessor, record

START_LIMIT = 60.0
POLL = 0.02
TAIL_LINES = 40
PORTS = range(10_000, 32_768)

# Run by an interpreter of its own, for the wish survives an exec, and code of ours between fork and
# exec could hang for ever in a process that has threads. 1 is PR_SET_PDEATHSIG, 15 is SIGTERM.
DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class ChildProcess:
    """One running program; `log` holds what it wrote."""

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
        """Starts `command`, whose first word is a path; its output is added to `log`.

        It has a session of its own, so that ^C in the terminal reaches us and not it, and on Linux
        it is told to end when we die. One that an earlier start with this log left behind is ended
        first. Raises ProcessFailed where it cannot be run.
        """
        if shutil.which(command[0]) is None:
            raise ProcessFailed(f"{name} cannot be run: {command[0]} is not a program.")
        await end_predecessor(_pidfile(log))
        with log.open("ab") as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *_dying_with_us(command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessFailed(f"{name} cannot be run: {error}") from error
        record(_pidfile(log), process.pid)
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def until(self, ready: Callable[[], Awaitable[bool]], limit: float = START_LIMIT) -> None:
        """Waits until `ready()` is true, for `limit` seconds at most.

        Raises ProcessFailed, with the program ended, where it never is.
        """
        try:
            async with asyncio.timeout(limit):
                await self._until(ready)
        except TimeoutError as error:
            await self.stop()
            raise self._failure(f"was not ready within {limit:g} s") from error
        except BaseException:
            await self.stop()
            raise

    async def _until(self, ready: Callable[[], Awaitable[bool]]) -> None:
        while not await ready():
            code = self._process.returncode
            if code is not None:
                raise self._failure(f"ended at its start ({how_it_ended(code)})")
            await asyncio.sleep(POLL)

    def _failure(self, what: str) -> ProcessFailed:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return ProcessFailed("\n".join([f"{self.name} {what}; the end of {self.log}:", *lines]))

    async def wait(self) -> int:
        """Its exit code, or the signal that ended it as a negative number, once it has ended."""
        return await self._process.wait()

    async def watch(self) -> NoReturn:
        """Raises ProcessFailed once it has ended by itself."""
        code = await self._process.wait()
        raise self._failure(f"ended ({how_it_ended(code)})")

    async def stop(self, grace: float = 5.0) -> None:
        """Ends it: SIGTERM, and SIGKILL where it is still there after `grace` seconds."""
        if self._process.returncode is None:
            await self._end(grace)
        _pidfile(self.log).unlink(missing_ok=True)

    async def _end(self, grace: float) -> None:
        self._process.terminate()
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def how_it_ended(code: int) -> str:
    """An exit code of `ChildProcess.wait` in words."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def program(name: str, package: str) -> str:
    """The path of the program `name` that the package `package` put beside our interpreter."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise ProcessFailed(f"{name} is not installed at {path}: run `pip install {package}`.")
    return str(path)


def free_ports(count: int, span: int = 0) -> list[int]:
    """So many different TCP ports that nobody uses at this moment; those `span` above are free too.

    They lie under the ports from which outgoing connections are made, so that none takes one before
    its server does.
    """
    candidates = (port for port in random.sample(PORTS, len(PORTS)) if _free(port))
    return list(islice((port for port in candidates if _free(port + span)), count))


def _free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind(("", port))
        except OSError:
            return False
    return True


def _pidfile(log: Path) -> Path:
    return log.with_suffix(".pid")


def _dying_with_us(command: list[str]) -> list[str]:
    # The kernel watches the thread that started the child, and only the main one lives as long as
    # the process does.
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return command
    return [sys.executable, "-ISc", DIE_WITH_PARENT, str(os.getpid()), *command]
