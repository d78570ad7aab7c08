"""The plan that `launcher.py` is given, and the command line that starts it."""

import base64
import ctypes
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.launcher import CREATE_RULESET
from perdure.sandbox.sandbox import ResourceLimits, SandboxUnusable
from perdure.sandbox.seccomp import build_filter, detect_machine
from perdure.sandbox.system import PYTHON

LAUNCHER = Path(__file__).with_name("launcher.py")

_QUERY_VERSION = 1
"""The flag with which Landlock returns its version instead of creating a ruleset."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def landlock_version() -> int:
    """Return this kernel's version of Landlock, or 0 without Landlock."""
    return max(0, int(_libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _QUERY_VERSION)))


@dataclass(frozen=True)
class LaunchPlan:
    """The restrictions that `launcher.py` applies before it runs a program; see there."""

    folder: Path
    readable: Sequence[Path]
    writable: Sequence[Path]
    devices: Sequence[Path]
    limits: ResourceLimits
    sockets: bool
    """Seccomp allows sockets."""
    tcp: bool
    """Landlock allows TCP."""
    uid: int | None = None
    user_namespace: bool = False
    own_process_count: bool = True
    """RLIMIT_NPROC counts the program's processes only, not others of the worker's user."""
    home: Path | None = None
    terminals: Sequence[int] = ()
    cgroups: Sequence[int] = ()

    def argv(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that starts `argv` under this plan. Raises SandboxUnusable."""
        machine = detect_machine()
        if machine is None:
            raise SandboxUnusable(
                f"The system calls of a machine of the kind {os.uname().machine} are not known: "
                "use an x86-64 or ARM64 one."
            )
        # RLIMIT_NPROC counts all processes of a user, unless in a user namespace of their own.
        other_processes = 0 if self.own_process_count else _count_threads(os.geteuid())
        plan = vars(self) | {
            "limits": self.limits.rlimits(other_processes),
            "landlock": landlock_version(),
            "seccomp_filter": base64.b64encode(build_filter(machine, self.sockets)).decode(),
        }
        return [str(PYTHON), "-I", "-S", str(LAUNCHER), json.dumps(plan, default=str), *argv]


def _count_threads(uid: int) -> int:
    """Count a user's threads: RLIMIT_NPROC limits these."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile
            count += len([*(process / "task").iterdir()]) if process.stat().st_uid == uid else 0
    return count
