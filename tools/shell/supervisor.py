"""Runs one shell in a terminal and sees to it that nothing of it stays behind.

A program of its own (`python supervisor.py TERMINAL COMMANDS MEMORY SHELL ARGUMENT...`, Linux),
because only a process that adopts the orphans of a shell can know that all of them are gone:

* TERMINAL is the path of the terminal that the shell gets for itself
* COMMANDS is the number of a descriptor, which the shell has as number 60
* MEMORY is how many bytes all processes may have together, and 0 that nobody watches; who watches
  also ends them before the disk is full
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
from collections.abc import Iterable, Iterator
from contextlib import suppress

PR_SET_DUMPABLE = 4
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

PULSE = 0.5
"""Seconds between two looks at memory and disk, where somebody watches."""

ROOM = 1 << 30
"""Bytes of the disk that are left free, or half of what was free at the start."""

SPARE = 32
"""The part of the machine's memory that is left free: one in so many."""


class Watch:
    """What the processes under this one take of the machine: none may take all of it."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.pulse = PULSE if memory else None
        self._room = min(ROOM, _free() // 2)
        self._next = 0.0
        self.told = ""

    def over(self) -> bool:
        """Whether it is too much; then `told` says what."""
        if not self._memory or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + PULSE
        total, available = _memory()
        if _free() < self._room:
            self.told = f"less than {_sized(self._room)} of the disk were free"
        elif available < total // SPARE:
            self.told = f"less than {_sized(total // SPARE)} of the memory were free"
        # What they have cannot be more than what all the machine has in use.
        elif total - available > self._memory and _held() > self._memory:
            self.told = f"they had more than {_sized(self._memory)} of memory"
        return bool(self.told)


def _free() -> int:
    disk = os.statvfs(".")
    return disk.f_bavail * disk.f_frsize


def _memory() -> tuple[int, int]:
    """Bytes that the machine has, and those that can be had."""
    with open("/proc/meminfo") as file:  # noqa: PTH123 - pathlib starts slowly
        sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in _parted(file)}
    return sizes["MemTotal"], sizes["MemAvailable"]


def _parted(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    return (line.partition(":") for line in lines)


def _held() -> int:
    """Bytes of memory of all processes under this one, each page once."""
    return sum(_held_by(pid) for pid, _ in descendants())


def _held_by(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123
            return sum(
                int(rest.split()[0]) << 10 for name, _, rest in _parted(file) if name == "Pss"
            )
    except OSError:  # gone, or it hides: then all that it has is its own
        try:
            with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0


def _sized(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


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

    def wait(self, shell: int, watch: Watch | None = None) -> int | None:
        """The exit code of the shell, or None where it has to be ended first."""
        while shell not in self.statuses:
            pulse = watch.pulse if watch else None
            ready, _, _ = select.select([LIFELINE, self._signals], [], [], pulse)
            if watch and watch.over():
                return None
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


def main(terminal: str, commands: str, memory: str, *shell: str) -> None:
    # Else whoever has our user could look into us, and make us forget what we are here for.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    children, watch = Children(), Watch(int(memory))
    code = children.wait(children.start(terminal, int(commands), *shell), watch)
    finished = code is not None and children.gone_within(GRACE)
    ended = set() if finished else children.end()
    if watch.told:
        _tell(terminal, f"\n[All processes of this shell were ended: {watch.told}.]\n")
    survivors = " ".join(str(pid) for pid, _ in descendants()) if children.reap() else ""
    told = (-1, 0) if code is None else (code, len(ended))
    os.write(2, f"{told[0]} {told[1]} {survivors}\n".encode())


def _tell(terminal: str, words: str) -> None:
    descriptor = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    with suppress(OSError):  # it is full, and nobody reads it
        os.write(descriptor, words.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
