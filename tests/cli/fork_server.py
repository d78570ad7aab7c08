"""A server that runs commands in forks of itself, which have the modules loaded.

To load them is most of the CPU of a short command, and the tests run thousands. A fork is a
process of its own, with the environment, the folder and the pipes of its caller.
"""

import asyncio
import atexit
import gc
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock

import perdure.cli
from perdure.cli.main import main

MAX_INPUT = 1 << 15
"""Bytes that a pipe takes before anybody reads them."""

SPAWN = "TESTS_SPAWN"
"""The variable with which each command gets an interpreter of its own."""

AT_START = ("PYTHON", "LC_", "LANG", "TZ", "COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TERM")
"""Beginnings of variables that count when an interpreter starts or modules load."""

CALLS, ERRORS = (ThreadPoolExecutor(64, name) for name in ("command", "stderr"))
"""The threads that wait for commands, and those that read what they write to stderr meanwhile."""

STARTING = Lock()
"""Held by the thread that starts the server, if no other has."""


def may_fork(env: Mapping[str, str], stdin: str) -> bool:
    """Tell whether a fork of the server does what a new interpreter would."""
    loaded, called = (
        {name: value for name, value in each.items() if name.startswith(AT_START)}
        for each in (server_environment(), env)
    )
    return loaded == called and SPAWN not in env and len(stdin) < MAX_INPUT


def server_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


class ForkedCommand:
    """A command in a fork."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self._is_cancelled = False

    async def run(
        self, args: Sequence[str], env: Mapping[str, str], stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        """Run it to its end; return its exit code and what it wrote to stdout and stderr."""
        request = {"args": [*args], "env": {**env}, "folder": str(Path.cwd())}
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(CALLS, self._call, json.dumps(request).encode(), stdin)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            self._is_cancelled = True
            self._kill()
            raise

    def _kill(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _call(self, request: bytes, stdin: bytes) -> tuple[int, bytes, bytes]:
        with ExitStack() as pipes, socket.socket(socket.AF_UNIX) as connection:
            with STARTING:
                path = start_server()
            connection.connect(path)
            (their_in, our_in), (our_out, their_out), (our_err, their_err) = (
                os.pipe() for _ in range(3)
            )
            with os.fdopen(our_in, "wb") as writer:
                writer.write(stdin)
            out, err = (pipes.enter_context(os.fdopen(it, "rb")) for it in (our_out, our_err))
            theirs = [their_in, their_out, their_err]
            socket.send_fds(connection, [len(request).to_bytes(4, "big")], theirs)
            for descriptor in theirs:
                os.close(descriptor)
            connection.sendall(request)
            answers = pipes.enter_context(connection.makefile())
            self.pid = int(answers.readline())
            if self._is_cancelled:  # before its id was known
                self._kill()
            errors = ERRORS.submit(err.read)
            written = out.read()
            code = int(answers.readline())
            self.pid = None
            return code, written, errors.result()


@cache
def start_server() -> str:
    """Start the server of this process, which ends with it; return the path of its socket."""
    folder = tempfile.mkdtemp(prefix="fork-")
    path = f"{folder}/socket"
    command = (sys.executable, "-m", "tests.cli.fork_server", path)
    pipe, env = subprocess.PIPE, server_environment()
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(server.communicate)
    return path


def serve(path: str) -> None:
    """Fork for each connection, until stdin is closed."""
    for module in pkgutil.walk_packages(perdure.cli.__path__, "perdure.cli."):
        import_module(module.name)
    gc.freeze()  # the garbage collector of a fork copies no pages of these
    threads = Path("/proc/self/task")
    assert not threads.exists() or len([*threads.iterdir()]) == 1, "a fork has the one that forks"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if not os.fork():
                    listener.close()
                    answer(connection)
                    os._exit(0)
    shutil.rmtree(Path(path).parent)


def answer(connection: socket.socket) -> None:
    """Run the command that is asked for; tell its process id, and its exit code at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as stream:
        request = json.loads(stream.read(int.from_bytes(size, "big")))
    pid = os.fork()
    if not pid:
        connection.close()
        run(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(f"{code}\n".encode())


def run(request: dict[str, object], descriptors: list[int]) -> None:
    """Become the command."""
    try:
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
            os.close(descriptor)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        os.environ.clear()
        os.environ.update(request["env"])  # type: ignore[call-overload]
        os.chdir(str(request["folder"]))
        sys.path[0] = str(request["folder"])
        sys.argv = ["perdure", *request["args"]]  # type: ignore[misc]
        main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1])
