"""A shell in a terminal of its own, which leaves no process behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perdure.sandbox.sandbox import UNCONFINED, Access, Launch, Sandbox, SandboxUnusable
from perdure.sandbox.system import PYTHON
from perdure.tools.shell.console import Console, NonBlockingWriter
from perdure.tools.tool import ToolFailed

SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True)
class Program:
    """A program that takes commands from descriptor 60, and the files that it must read."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()


SESSION_SCRIPT = Path(__file__).with_name("session.bash").read_text()
BASH = Program(
    ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i"),
    {"PROMPT_COMMAND": SESSION_SCRIPT},
)

SESSION_VARIABLE = "PERDURE_SESSION"
"""The environment variable that identifies the processes of a shell."""
KILL_TIMEOUT = 5.0
"""Seconds for killed processes to disappear."""
SUPERVISOR_TIMEOUT = 15.0
"""Seconds after which a supervisor that does not end is killed, and all with it."""


@dataclass(frozen=True)
class ShellExit:
    """The end of a shell: `exit_code` is 128 + N after signal N, and -1 if it was closed.

    `background` counts the background processes that were killed with it; `survivors` are the ids
    of processes that could not be killed, such as another user's.
    """

    exit_code: int
    background: int = 0
    survivors: tuple[int, ...] = ()


class Shell:
    """An interactive bash, or another such program, with all of its descendants.

    It lives until it exits, is closed, or this program dies in any way. `exit_task` completes once
    all processes are gone and all output is read; it raises ToolFailed if there was no start.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
        sandbox: Sandbox = UNCONFINED,
        network: bool = True,
        program: Program = BASH,
    ) -> None:
        if sys.platform != "linux" or not Path(program.argv[0]).exists():
            raise ToolFailed(f"Commands need Linux and {program.argv[0]}: start the worker there.")
        self._session_id = uuid.uuid4().hex
        self.console = Console(on_output)
        commands, self._commands = os.pipe()
        try:
            readable, terminal = (SUPERVISOR, *program.readable), self.console.descriptor
            access = Access(directory, network, readable, terminal, (commands,))
            mark = {SESSION_VARIABLE: self._session_id}
            environment = {**environment, **program.environment, **mark}
            place = (self.console.name, commands, program.argv)
            self._launch = _launch_supervised(sandbox, access, environment, *place)
            self._process = _start(self._launch, directory)
        except (OSError, SandboxUnusable) as error:
            self.console.abandon()
            os.close(self._commands)
            if isinstance(error, SandboxUnusable):
                raise ToolFailed(f"The shell could not be started: {error}") from error
            raise
        finally:
            os.close(commands)
        self._control = NonBlockingWriter(self._commands)
        self._kill_acknowledged = asyncio.Event()
        self.exit_task = asyncio.create_task(self._await_exit())

    def send(self, frame: str) -> None:
        """Send a frame, ended by NUL, to descriptor 60 of the shell."""
        self._control.write(frame.encode() + b"\0")

    async def kill_since(self, tick: int) -> None:
        """Kill the shell's descendants started since that tick of the boot clock."""
        self._kill_acknowledged.clear()
        with contextlib.suppress(OSError, ValueError):  # closed, so they are killed anyway
            assert self._process.stdin is not None
            self._process.stdin.write(f"{tick}\n".encode())
        acknowledged = asyncio.ensure_future(self._kill_acknowledged.wait())
        either = {acknowledged, self.exit_task}
        await asyncio.wait(either, timeout=KILL_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        acknowledged.cancel()

    def close(self) -> None:
        """Start ending the shell with all its processes; `exit_task` completes afterwards."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
            loop = asyncio.get_running_loop()
            self._kill_timer = loop.call_later(SUPERVISOR_TIMEOUT, self._process.kill)

    async def _await_exit(self) -> ShellExit:
        try:
            report = await self._read_report()
            code = self._process.wait()
            if code >= 0:
                return _parse_report(report)
            return await _kill_unsupervised(self._session_id, code)
        finally:
            self.close()
            self._kill_timer.cancel()
            self._launch.cleanup.close()
            self._control.stop()
            os.close(self._commands)
            await self.console.close()

    async def _read_report(self) -> str:
        """Return the supervisor's last line, once it and all other processes are gone."""
        assert self._process.stderr is not None
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._process.stderr
        )
        last_line = b""
        try:
            while line := await reader.readline():
                if line == b"ended\n":
                    self._kill_acknowledged.set()
                else:
                    last_line = line
        finally:
            transport.close()
        return last_line.decode(errors="replace").strip()


def _launch_supervised(
    sandbox: Sandbox,
    access: Access,
    environment: Mapping[str, str],
    terminal: str,
    commands: int,
    argv: Sequence[str],
) -> Launch:
    """Prepare the supervisor; it runs inside a sandbox that would hide the shell from it."""
    # Above the kernel's own limit: the kernel, where it can, kills only the largest process.
    memory_limit = sandbox.limits.memory_bytes * 9 // 8 if sandbox.limits else 0
    program, numbers = ("-I", "-S", str(SUPERVISOR)), (str(commands), str(memory_limit))
    if not sandbox.has_pid_namespace:
        launch = sandbox.launch(argv, access, environment)
        return replace(launch, argv=[sys.executable, *program, terminal, *numbers, *launch.argv])
    assert access.terminal is not None
    name = f"/proc/self/fd/{access.terminal}"  # the sandbox has no other name for it
    access = replace(access, pass_fds=(*access.pass_fds, access.terminal))
    return sandbox.launch([str(PYTHON), *program, name, *numbers, *argv], access, environment)


def _start(launch: Launch, directory: Path) -> "subprocess.Popen[bytes]":
    # Not asyncio's subprocess: that is killed when it is garbage-collected, but the supervisor has
    # to live until it has killed all the others.
    try:
        return subprocess.Popen(
            launch.argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=launch.pass_fds,
            cwd=directory,
            env=launch.environment,
            start_new_session=True,
        )
    except BaseException:
        launch.cleanup.close()
        raise


def _parse_report(report: str) -> ShellExit:
    try:
        code, background, *survivors = map(int, report.split())
    except ValueError as error:
        raise ToolFailed(f"The shell could not be started: {report}.") from error
    return ShellExit(code, background=background, survivors=tuple(survivors))


async def _kill_unsupervised(session_id: str, code: int) -> ShellExit:
    """Kill the processes of a shell whose supervisor died, found by SESSION_VARIABLE."""
    deadline = time.monotonic() + KILL_TIMEOUT
    while (remaining := _find_processes(session_id)) and time.monotonic() < deadline:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):  # ended since it was listed
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.01)
    return ShellExit(128 - code, survivors=remaining)


def _find_processes(session_id: str) -> tuple[int, ...]:
    variable, pids = f"{SESSION_VARIABLE}={session_id}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's process, or gone
            if variable in (process / "environ").read_bytes().split(b"\0"):
                pids.append(int(process.name))
    return tuple(pids)
