"""Runs one server of the Model Context Protocol and sees to it that nothing of it stays behind.

A program of its own (`PARENT COMMAND ARGUMENT...`, Linux). The server has its stdin, stdout and
stderr. It is ended, with every process that came of it, when it ends itself, when PARENT (the id
of the process that started this one) dies in any way, and on SIGTERM, SIGINT and SIGHUP.
"""

import contextlib
import ctypes
import os
import signal
import sys

from tools.shell.supervisor import GRACE, Children, descendants

PR_SET_PDEATHSIG = 1
NOT_STARTED = 127


def die_with_parent(number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot be told of the parent's end")


def start(command: list[str]) -> int:
    """A session of its own, so that it can be ended without its keeper."""
    keeper = os.getpid()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, a server may not
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == keeper:
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]!r} cannot be started: {error.strerror}.\n".encode())
    os._exit(NOT_STARTED)


def let_go() -> None:
    """Leave stdin and stdout to the server: while we hold them, nobody sees that it closed them.

    Standard input becomes a pipe that never says anything, for `Children.wait` listens to it.
    """
    silence, held = os.pipe()
    os.dup2(silence, 0)
    os.dup2(held, 1)


def main(parent: int, command: list[str]) -> int:
    children = Children()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:
        return NOT_STARTED
    server = start(command)
    let_go()
    code = children.wait(server)
    if code is None:
        for pid, _ in descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        children.gone_within(GRACE)
    children.end()
    return children.statuses.get(server, NOT_STARTED) if code is None else code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
