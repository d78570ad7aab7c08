"""A shell in a terminal of its own, of which nothing is left once it is over."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.sandbox import NONE, Launch, Place, Sandbox, Unusable
from sandbox.system import PYTHON
from tools.shell.console import Console, Sender
from tools.tool import ToolFailed

SUPERVISOR = Path(__file__).with_name("supervisor.py")
SHELL = ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")

MARK = "PERDURE_SESSION"
"""A variable in a shell's environment by which its processes can be told."""

PATIENCE = 5.0
"""Seconds for killed processes to be gone."""

LAST = 15.0
"""Seconds after which a supervisor that was told to end is ended, and all with it."""


@dataclass(frozen=True)
class Ended:
    """How a shell ended: `exit_code` is 128 + N after signal N, and -1 where it was closed.

    `background` counts processes which it left running and that were ended with it; `survivors`
    are the ids of those that could not be ended, such as another user's.
    """

    exit_code: int
    background: int = 0
    survivors: tuple[int, ...] = ()


class Shell:
    """An interactive bash, with every process that comes of it.

    It lives until it ends itself, is closed, or this program dies in any way. `over` tells how it
    ended, once none of its processes is left and all that they wrote was heard; it raises
    ToolFailed where the shell could not be started.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        hear: Callable[[bytes], None],
        sandbox: Sandbox = NONE,
        network: bool = True,
    ) -> None:
        if sys.platform != "linux" or not Path(SHELL[0]).exists():
            raise ToolFailed(f"Commands need Linux and {SHELL[0]}: start the worker there.")
        self._mark = uuid.uuid4().hex
        self.console = Console(hear)
        commands, self._commands = os.pipe()
        try:
            place = Place(directory, network, (SUPERVISOR,), self.console.descriptor, (commands,))
            marked = {**environment, MARK: self._mark}
            self._launch = _launch(sandbox, place, marked, self.console.name, commands)
            self._process = _start(self._launch, directory)
        except (OSError, Unusable) as error:
            self.console.abandon()
            os.close(self._commands)
            if isinstance(error, Unusable):
                raise ToolFailed(f"The shell could not be started: {error}") from error
            raise
        finally:
            os.close(commands)
        self._control = Sender(self._commands)
        self._acknowledged = asyncio.Event()
        self.over = asyncio.create_task(self._follow())

    def send(self, frame: str) -> None:
        """To descriptor 60 of the shell, where it ends with a NUL."""
        self._control.send(frame.encode() + b"\0")

    async def end_since(self, tick: int) -> None:
        """Kill what came of the shell since that tick of the boot clock, but not the shell."""
        self._acknowledged.clear()
        with contextlib.suppress(OSError, ValueError):  # closed, and so they are ended anyway
            assert self._process.stdin is not None
            self._process.stdin.write(f"{tick}\n".encode())
        acknowledged = asyncio.ensure_future(self._acknowledged.wait())
        await asyncio.wait(
            {acknowledged, self.over}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        acknowledged.cancel()

    def close(self) -> None:
        """End it with all its processes; `over` tells when that is done."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
            self._last = asyncio.get_running_loop().call_later(LAST, self._process.kill)

    async def _follow(self) -> Ended:
        try:
            said = await self._report()
            code = self._process.wait()
            ended = _told(said) if code >= 0 else await _unsupervised(self._mark, code)
        finally:
            self.close()
            self._last.cancel()
            self._launch.over.close()
            self._control.stop()
            os.close(self._commands)
            await self.console.close()
        return ended

    async def _report(self) -> str:
        """The supervisor's last line, once it is gone, and everybody else with it."""
        assert self._process.stderr is not None
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stderr
        )
        last = b""
        try:
            while line := await reader.readline():
                if line == b"ended\n":
                    self._acknowledged.set()
                else:
                    last = line
        finally:
            transport.close()
        return last.decode(errors="replace").strip()


def _launch(
    sandbox: Sandbox, place: Place, environment: Mapping[str, str], terminal: str, commands: int
) -> Launch:
    """The supervisor with its shell: in the sandbox, where that would hide the shell from it."""
    # A little more than what the kernel holds them to: where it can, it ends only the largest.
    watched = sandbox.limits.memory * 9 // 8 if sandbox.limits else 0
    if not sandbox.private:
        own = sandbox.launch(SHELL, place, environment)
        return replace(own, argv=_supervised(sys.executable, terminal, commands, watched, own.argv))
    assert place.terminal is not None
    name = f"/proc/self/fd/{place.terminal}"  # it has no other name in there
    argv = _supervised(PYTHON, name, commands, watched, SHELL)
    place = replace(place, passed=(*place.passed, place.terminal))
    return sandbox.launch(argv, place, environment)


def _supervised(
    python: str | Path, terminal: str, commands: int, memory: int, shell: Sequence[str]
) -> list[str]:
    numbers = (str(commands), str(memory))
    return [str(python), "-I", "-S", str(SUPERVISOR), terminal, *numbers, *shell]


def _start(launch: Launch, directory: Path) -> "subprocess.Popen[bytes]":
    # Not asyncio's own kind of process: that is killed when it is forgotten, and this one has to
    # live until it has ended all the others.
    try:
        return subprocess.Popen(
            launch.argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=launch.passed,
            cwd=directory,
            env=launch.environment,
            start_new_session=True,
        )
    except BaseException:
        launch.over.close()
        raise


def _told(report: str) -> Ended:
    try:
        code, background, *survivors = map(int, report.split())
    except ValueError as error:
        raise ToolFailed(f"The shell could not be started: {report}.") from error
    return Ended(code, background=background, survivors=tuple(survivors))


async def _unsupervised(mark: str, code: int) -> Ended:
    """The shell killed its supervisor: find the rest by their mark and end them from here."""
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
