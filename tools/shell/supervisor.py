"""Runs one shell in a terminal and sees to it that nothing of it stays behind.

A program of its own (`python supervisor.py TERMINAL COMMANDS SHELL ARGUMENT...`, Linux), because
only a process that adopts the orphans of a shell can know that all of them are gone:

* TERMINAL is the path of the terminal that the shell gets for itself
* COMMANDS is the number of a descriptor, which the shell has as number 60
* stdin is the lifeline: its end (and that of whoever held the other end, even by SIGKILL) ends the
  shell and every process under it. A number that comes in is a tick of the boot clock: what came of
  the shell since then ends, and `ended` is said on stderr
* stderr takes one line at the end: exit code, number of background processes that had to be
  ended, and the ids of those that could not be

SIGTERM, SIGINT and SIGHUP end the shell as well.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator

PR_SET_CHILD_SUBREAPER = 36
STOP = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LIFELINE = 0
COMMANDS = 60

GRACE = 0.5
"""Seconds that what the shell left running has to finish, as `>(tee log)` needs a moment."""

KILLING = 0.25
"""Seconds in which what came of one command is killed, as it may go on starting processes."""

PATIENCE = 5.0
"""Seconds after which a process that does not die of SIGKILL is reported, not waited for."""


class Children:
    """The processes under this one: all of the shell's, however they detached themselves."""

    def __init__(self) -> None:
        self._adopt_orphans()
        self._signals, wakeup = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wakeup, False)
        for number in (signal.SIGCHLD, *STOP):
            # A handler, not SIG_IGN: the shell must not inherit deaf ears.
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self.statuses: dict[int, int] = {}

    def _adopt_orphans(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot adopt orphaned processes")

    def start(self, terminal: str, commands: int, *shell: str) -> int:
        """Its own session; the terminal that it opens first becomes the one that controls it."""
        os.set_inheritable(commands, False)
        return os.posix_spawn(
            shell[0],
            shell,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
                (os.POSIX_SPAWN_DUP2, commands, COMMANDS),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )

    def wait(self, shell: int) -> int | None:
        """The exit code of the shell, or None where we are told to end it first."""
        while shell not in self.statuses:
            ready, _, _ = select.select([LIFELINE, self._signals], [], [])
            if self._signals in ready and STOP & set(os.read(self._signals, 4096)):
                return None
            self.reap()
            if LIFELINE in ready:
                if not (ticks := os.read(LIFELINE, 4096).split()):
                    break
                self._end_since(shell, int(ticks[-1]))
                os.write(2, b"ended\n")
        return self.statuses.get(shell)

    def _end_since(self, shell: int, tick: int) -> None:
        """Kill what came of the shell since then; not what an older process of it started."""
        deadline = time.monotonic() + KILLING
        while family := dict(descendants((shell,), tick)):
            for pid in family:
                _killed(pid)
            if time.monotonic() >= deadline:
                return
            self._doze()
            self.reap()

    def reap(self) -> bool:
        """Take leave of those that ended; False when there is nobody left at all."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                self.statuses[ended[0]] = code if code >= 0 else 128 - code
        except ChildProcessError:
            return False
        return True

    def gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.reap():
            if time.monotonic() >= deadline:
                return False
            self._doze()
        return True

    def end(self) -> set[int]:
        """Kill until nobody is left, and say who was killed.

        Whoever loses a parent becomes our child, so having no child means that none is left.
        """
        killed: set[int] = set()
        deadline = time.monotonic() + PATIENCE
        while self.reap() and time.monotonic() < deadline:
            killed |= self._kill()
            self._doze()
        return killed

    def _kill(self) -> set[int]:
        family = dict(descendants())
        # Groups first: that reaches at once also those who are just being forked.
        for group in set(family.values()):
            _killed(-group)
        return {pid for pid in family if _killed(pid)}

    def _doze(self) -> None:
        if select.select([self._signals], [], [], 0.01)[0]:
            os.read(self._signals, 4096)


def descendants(under: tuple[int, ...] = (), tick: int = 0) -> Iterator[tuple[int, int]]:
    """The id and process group of every living process under this one, by the parents' ids.

    `tick` leaves out those that started earlier, and what is under them, but for the processes
    `under`, which are left out themselves.
    """
    table = dict(_processes())
    roots = {os.getpid(), *under}
    family = set(roots)
    grown = True
    while grown:
        new = {
            pid
            for pid, (parent, _, _, started) in table.items()
            if parent in family and started >= tick
        } - family
        family |= new
        grown = bool(new)
    for pid in family - roots:
        _, group, state, _ = table[pid]
        if state != "Z":
            yield pid, group


def _processes() -> Iterator[tuple[int, tuple[int, int, str, int]]]:
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib starts slowly
        try:
            with open(f"/proc/{name}/stat", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended since it was listed
        yield int(name), (int(fields[1]), int(fields[2]), fields[0], int(fields[19]))


def _killed(target: int) -> bool:
    """False for who is gone, and for another user's process, which will be a survivor."""
    try:
        os.kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main(terminal: str, commands: str, *shell: str) -> None:
    children = Children()
    code = children.wait(children.start(terminal, int(commands), *shell))
    finished = code is not None and children.gone_within(GRACE)
    ended = set() if finished else children.end()
    survivors = " ".join(str(pid) for pid, _ in descendants()) if children.reap() else ""
    told = (-1, 0) if code is None else (code, len(ended))
    os.write(2, f"{told[0]} {told[1]} {survivors}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
