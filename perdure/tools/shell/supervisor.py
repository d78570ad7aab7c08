"""Run one shell in a terminal, and kill all of its descendants when it ends.

A program of its own (`python supervisor.py TERMINAL COMMANDS MEMORY SHELL ARGUMENT...`, Linux),
because only a process that adopts the orphans of a shell can know that all of them are gone:

* TERMINAL is the path of the shell's controlling terminal
* COMMANDS is the number of a descriptor, which the shell gets as number 60
* MEMORY is the limit in bytes for all processes together, or 0 for no watch; the watch also kills
  them before the disk is full
* stdin is the lifeline: its end (also when the worker is killed by SIGKILL) kills the shell and all
  of its descendants. A number that comes in is a tick of the boot clock: the descendants started
  since then are killed, and stderr gets the line `ended`
* stderr gets one line at the end: the exit code, the number of background processes that were
  killed, and the ids of those that could not be killed

SIGTERM, SIGINT and SIGHUP end the shell as well.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LIFELINE = 0
COMMANDS_DESCRIPTOR = 60

GRACE_PERIOD = 0.5
"""Seconds for remaining processes to finish, as `>(tee log)` needs a moment."""
COMMAND_KILL_TIMEOUT = 0.25
"""Seconds of killing the descendants of one command, which may keep forking."""
KILL_TIMEOUT = 5.0
"""Seconds after which a process that survives SIGKILL is reported, not waited for."""
WATCH_INTERVAL = 0.5
"""Seconds between two checks of memory and disk."""
MIN_FREE_DISK_BYTES = 1 << 30
"""The disk space to leave free, or half of the free space at the start if that is less."""
FREE_MEMORY_DIVISOR = 32
"""1/32 of the machine's memory is left free."""


class ResourceWatch:
    """A watch over the memory and disk that the descendants of this process use."""

    def __init__(self, memory: int) -> None:
        self._memory_limit = memory
        self.interval = WATCH_INTERVAL if memory else None
        self._min_free_disk = min(MIN_FREE_DISK_BYTES, _free_disk() // 2)
        self._next_check = 0.0
        self.reason = ""

    def is_exceeded(self) -> bool:
        """Check the limits; set `reason` where one is exceeded."""
        if not self._memory_limit or time.monotonic() < self._next_check:
            return False
        self._next_check = time.monotonic() + WATCH_INTERVAL
        memory = _read_sizes("/proc/meminfo")
        total, available = memory["MemTotal"], memory["MemAvailable"]
        if _free_disk() < self._min_free_disk:
            self.reason = f"less than {_format_size(self._min_free_disk)} of the disk were free"
        elif available < (minimum := total // FREE_MEMORY_DIVISOR):
            self.reason = f"less than {_format_size(minimum)} of the memory were free"
        # Summed only if the machine's total use exceeds the limit: the sum is costly.
        elif total - available > self._memory_limit < sum(map(_memory_of, descendants())):
            self.reason = f"they had more than {_format_size(self._memory_limit)} of memory"
        return bool(self.reason)


def _free_disk() -> int:
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_frsize


def _read_sizes(path: str) -> dict[str, int]:
    """Return the sizes in bytes that a file in /proc gives in lines such as `MemTotal: 8 kB`."""
    with open(path) as file:  # noqa: PTH123 - pathlib starts slowly
        fields = [line.split() for line in file]
    return {name.rstrip(":"): int(size) << 10 for name, size, *unit in fields if unit == ["kB"]}


def _memory_of(pid: int) -> int:
    """Return the memory of a process in bytes, with its part of the pages that it shares."""
    try:
        return _read_sizes(f"/proc/{pid}/smaps_rollup").get("Pss", 0)
    except OSError:  # gone, or not readable: its resident size includes shared pages
        try:
            with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0


def _format_size(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


class Children:
    """The descendants of this process, including those that detached themselves."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot adopt orphaned processes")
        self._signals, wakeup = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wakeup, False)
        for number in (signal.SIGCHLD, *STOP_SIGNALS):
            # A handler, because the shell would inherit SIG_IGN.
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        self.statuses: dict[int, int] = {}

    def start(self, terminal: str, commands: int, *shell: str) -> int:
        """Start the shell in a session of its own, controlled by the terminal it opens first."""
        os.set_inheritable(commands, False)
        return os.posix_spawn(
            shell[0],
            shell,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
                (os.POSIX_SPAWN_DUP2, commands, COMMANDS_DESCRIPTOR),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )

    def wait(self, shell: int, watch: ResourceWatch | None = None) -> int | None:
        """Return the exit code of the shell, or None if it has to be killed."""
        while shell not in self.statuses:
            interval = watch.interval if watch else None
            ready, _, _ = select.select([LIFELINE, self._signals], [], [], interval)
            if watch and watch.is_exceeded():
                return None
            if self._signals in ready and STOP_SIGNALS & set(os.read(self._signals, 4096)):
                return None
            self.reap()
            if LIFELINE in ready:
                if not (ticks := os.read(LIFELINE, 4096).split()):
                    break
                self._kill_since(shell, int(ticks[-1]))
                os.write(2, b"ended\n")
        return self.statuses.get(shell)

    def _kill_since(self, shell: int, tick: int) -> None:
        """Kill the shell's descendants since then, except those of its older descendants."""
        deadline = time.monotonic() + COMMAND_KILL_TIMEOUT
        while family := list(descendants((shell,), tick)):
            for pid in family:
                _kill(pid)
            if time.monotonic() >= deadline:
                return
            self._wait_for_signal()
            self.reap()

    def reap(self) -> bool:
        """Collect the exit statuses of ended processes; return False when no child is left."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                self.statuses[ended[0]] = code if code >= 0 else 128 - code
        except ChildProcessError:
            return False
        return True

    def wait_for_all(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.reap():
            if time.monotonic() >= deadline:
                return False
            self._wait_for_signal()
        return True

    def kill_all(self) -> set[int]:
        """Kill until no descendant is left, and thus no child; return the ids of those killed."""
        killed: set[int] = set()
        deadline = time.monotonic() + KILL_TIMEOUT
        while self.reap() and time.monotonic() < deadline:
            killed |= self._kill()
            self._wait_for_signal()
        return killed

    def _kill(self) -> set[int]:
        family = list(_family())
        # Groups first, which also reaches processes that are being forked. A process that forks and
        # ends is gone before its line in /proc is read; its dead parents, which nobody has reaped
        # yet, still name its group.
        for group in {process.group for process in family if process.group > 1}:
            _kill(-group)
        return {process.pid for process in family if process.is_alive and _kill(process.pid)}

    def _wait_for_signal(self) -> None:
        if select.select([self._signals], [], [], 0.01)[0]:
            os.read(self._signals, 4096)


class Process:
    """A process as /proc shows it; `start` is a tick of the boot clock."""

    def __init__(self, pid: int, parent: int, group: int, state: str, start: int) -> None:
        self.pid, self.parent, self.group, self.start = pid, parent, group, start
        self.is_alive = state not in "ZX"


def descendants(ancestors: tuple[int, ...] = (), tick: int = 0) -> Iterator[int]:
    """Yield the id of every living descendant of this process.

    Processes started before `tick` are excluded with their descendants, except those of
    `ancestors`, which are excluded themselves.
    """
    yield from (process.pid for process in _family(ancestors, tick) if process.is_alive)


def _family(ancestors: tuple[int, ...] = (), tick: int = 0) -> Iterator[Process]:
    """Yield the descendants as `descendants` does, and those that ended and were not reaped."""
    table = {process.pid: process for process in _processes()}
    roots = {os.getpid(), *ancestors}
    new = family = roots
    while new:
        children = (process for process in table.values() if process.parent in new)
        new = {process.pid for process in children if process.start >= tick} - family
        family = family | new
    yield from (table[pid] for pid in family - roots)


def _processes() -> Iterator[Process]:
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib starts slowly
        try:
            with open(f"/proc/{name}/stat", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended since it was listed
        yield Process(int(name), int(fields[1]), int(fields[2]), fields[0], int(fields[19]))


def _kill(target: int) -> bool:
    """Send SIGKILL; return False for a process that is gone or another user's."""
    try:
        os.kill(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def main(terminal: str, commands: str, memory: str, *shell: str) -> None:
    # Otherwise a process of the same user could attach to this one and change it.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    children, watch = Children(), ResourceWatch(int(memory))
    code = children.wait(children.start(terminal, int(commands), *shell), watch)
    finished = code is not None and children.wait_for_all(GRACE_PERIOD)
    killed = set() if finished else children.kill_all()
    if watch.reason:
        note = f"\n[All processes of this shell were ended: {watch.reason}.]\n"
        _write_to_terminal(terminal, note)
    survivors = " ".join(map(str, descendants())) if children.reap() else ""
    status = (-1, 0) if code is None else (code, len(killed))
    os.write(2, f"{status[0]} {status[1]} {survivors}\n".encode())


def _write_to_terminal(terminal: str, text: str) -> None:
    descriptor = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    with suppress(OSError):  # its buffer is full
        os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
