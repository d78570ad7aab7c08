"""Resource limits for the processes of one shell."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

_MACHINE_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class ResourceLimits:
    """Limits for the processes of one shell."""

    memory_bytes: int = _MACHINE_MEMORY // 2
    """The limit for all processes together, and for each by itself."""
    processes: int = 1024
    file_bytes: int = 8 << 30
    """The size of one file."""
    open_files: int = 65_536
    """Descriptors of one process."""
    temporary_bytes: int = min(2 << 30, _MACHINE_MEMORY // 8)
    """The size of each temporary folder, which is held in memory."""

    def rlimits(self, other_processes: int) -> list[tuple[int, int]]:
        """Return each resource with its limit, capped at this process's own hard limit.

        `other_processes` are those of the same user, which RLIMIT_NPROC counts as well.
        """
        limits = (
            (resource.RLIMIT_DATA, self.memory_bytes),
            (resource.RLIMIT_NPROC, self.processes + other_processes),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_CORE, 0),
        )
        return [(resource_id, _cap(resource_id, limit)) for resource_id, limit in limits]


DEFAULT_LIMITS = ResourceLimits()


def _cap(resource_id: int, limit: int) -> int:
    hard = resource.getrlimit(resource_id)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def count_threads(uid: int) -> int:
    """Count a user's threads: RLIMIT_NPROC limits these."""
    return sum(_count_own_threads(process, uid) for process in Path("/proc").iterdir())


def _count_own_threads(process: Path, uid: int) -> int:
    try:
        is_own = process.name.isdigit() and process.stat().st_uid == uid
        return len(os.listdir(process / "task")) if is_own else 0  # noqa: PTH208
    except OSError:  # ended meanwhile
        return 0
