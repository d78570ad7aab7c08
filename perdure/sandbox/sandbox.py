"""The interface of a sandbox, and `Unconfined`, which has none of its restrictions."""

import os
import resource
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

TOOLS_UID = 60999
"""The user id of a root worker's tools: one that no system assigns, and below 65,536 because
containers often have no higher ones."""

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
        limits = {
            resource.RLIMIT_DATA: self.memory_bytes,
            resource.RLIMIT_NPROC: self.processes + other_processes,
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CORE: 0,
        }
        hard = {kind: resource.getrlimit(kind)[1] for kind in limits}
        return [
            (kind, limit if hard[kind] == resource.RLIM_INFINITY else min(limit, hard[kind]))
            for kind, limit in limits.items()
        ]


DEFAULT_LIMITS = ResourceLimits()


class SandboxUnusable(Exception):
    """A sandbox cannot be used here; the text says why and what to do, in one sentence."""


@dataclass(frozen=True)
class Access:
    """The parts of the machine that a program may use, beside reading the system's own files."""

    workspace: Path
    network: bool = False
    readable: tuple[Path, ...] = ()
    terminal: int | None = None
    """A descriptor of the terminal that the program may open again by its name."""
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the program inherits, under the same numbers."""


@dataclass(frozen=True)
class Launch:
    """A command to start; `cleanup.close()` removes its resources once its processes are gone."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    pass_fds: Sequence[int]
    cleanup: ExitStack = field(default_factory=ExitStack)


class Sandbox(Protocol):
    """A way to start programs with restricted access to the machine."""

    @property
    def name(self) -> str: ...

    @property
    def gaps(self) -> tuple[str, ...]:
        """The dangers that it does not protect from, each as a part of a sentence."""

    @property
    def has_pid_namespace(self) -> bool:
        """True if a program sees its own processes only, and all of them end with it."""

    @property
    def limits(self) -> ResourceLimits | None:
        """The limits of a program with all that it starts; None where there are none."""

    def prepare(self, workspace: Path) -> None:
        """Make the workspace writable for programs. Raises SandboxUnusable, OSError."""

    def launch(self, argv: Sequence[str], access: Access, environment: Mapping[str, str]) -> Launch:
        """Return the command that runs `argv` with `access`. Raises SandboxUnusable, OSError."""


@dataclass(frozen=True)
class Unconfined:
    """No sandbox: programs run as the worker's user, with all that this user may do."""

    name: str = "none"
    gaps: tuple[str, ...] = ("anything: commands run as the worker's own user",)
    has_pid_namespace: bool = False
    limits: None = None

    def prepare(self, workspace: Path) -> None:
        """Do nothing: programs can write what the worker can."""

    def launch(self, argv: Sequence[str], access: Access, environment: Mapping[str, str]) -> Launch:
        return Launch(argv, environment, access.pass_fds)


UNCONFINED = Unconfined()


def describe(sandbox: Sandbox) -> dict[str, Any]:
    """Return the sandbox's name and gaps, for the log."""
    return {"name": sandbox.name, "does_not_protect_from": list(sandbox.gaps)}
