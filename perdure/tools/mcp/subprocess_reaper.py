"""Run one MCP server, and end it together with all of its descendants.

A program of its own (`PARENT COMMAND ARGUMENT...`, Linux). The server inherits its stdin, stdout
and stderr. All descendants are killed when the server ends, when PARENT (the id of the process that
started this one) dies in any way, and on SIGTERM, SIGINT and SIGHUP.
"""

import contextlib
import ctypes
import os
import signal
import sys

from perdure.tools.shell.supervisor import GRACE_PERIOD, Children, descendants

PR_SET_PDEATHSIG = 1
NOT_STARTED = 127


def die_with_parent(number: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot be told of the parent's end")


def start(command: list[str]) -> int:
    """Start the server in a session of its own, so that signals to it spare the reaper."""
    reaper = os.getpid()
    if pid := os.fork():
        return pid
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, a server must not
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == reaper:
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]!r} cannot be started: {error.strerror}.\n".encode())
    os._exit(NOT_STARTED)


def release_stdio() -> None:
    """Leave stdin and stdout to the server alone, so that the worker sees when it closes them.

    Standard input becomes a pipe that stays silent, because `Children.wait` selects on it.
    """
    read_end, write_end = os.pipe()
    os.dup2(read_end, 0)
    os.dup2(write_end, 1)


def main(parent: int, command: list[str]) -> int:
    children = Children()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:
        return NOT_STARTED
    server = start(command)
    release_stdio()
    code = children.wait(server)
    if code is None:
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)
        children.wait_for_all(GRACE_PERIOD)
    children.kill_all()
    return children.statuses.get(server, NOT_STARTED) if code is None else code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
