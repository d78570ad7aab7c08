"""How much of the machine the processes of one shell may take."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

_MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class Limits:
    """Sizes are in bytes.

    `memory` is for all of them together, and each by itself may have as much; `file` is the longest
    that a file may get, and `files` are those that a process has open. `temporary` is for each
    folder that is gone with the shell, as these are memory.
    """

    memory: int = _MACHINE // 2
    processes: int = 1024
    file: int = 8 << 30
    files: int = 65_536
    temporary: int = min(2 << 30, _MACHINE // 8)

    def resources(self, others: int) -> list[tuple[int, int]]:
        """Each resource with its limit: never more than this process may have itself.

        `others` are the processes that count along, as they are the same user's.
        """
        wanted = (
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_NPROC, self.processes + others),
            (resource.RLIMIT_FSIZE, self.file),
            (resource.RLIMIT_NOFILE, self.files),
            (resource.RLIMIT_CORE, 0),
        )
        return [(which, _within(which, most)) for which, most in wanted]


USUAL = Limits()


def _within(which: int, most: int) -> int:
    hard = resource.getrlimit(which)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def threads_of(uid: int) -> int:
    """How many threads a user has: that is what the kernel counts as processes."""
    return sum(_threads(process, uid) for process in Path("/proc").iterdir())


def _threads(process: Path, uid: int) -> int:
    try:
        own = process.name.isdigit() and process.stat().st_uid == uid
        return len(os.listdir(process / "task")) if own else 0  # noqa: PTH208
    except OSError:  # ended meanwhile
        return 0
