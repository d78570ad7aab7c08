"""What `enter.py` is told."""

import base64
import ctypes
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.calls import this_machine
from sandbox.enter import CREATE_RULESET
from sandbox.filter import program
from sandbox.limits import Limits, threads_of
from sandbox.sandbox import Unusable
from sandbox.system import PYTHON

ENTER = Path(__file__).with_name("enter.py")

_VERSION = 1
"""The flag that has Landlock say how new it is, in place of making rules."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def landlock() -> int:
    """The version of Landlock that this kernel has; 0 where it has none."""
    return max(0, int(_libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


@dataclass(frozen=True)
class Plan:
    """See `enter.py`. `sockets` is whether there are any, `tcp` whether Landlock lets them out;
    `counted` says whether its processes are counted without the worker's user's others."""

    folder: Path
    reads: Sequence[Path]
    writes: Sequence[Path]
    devices: Sequence[Path]
    limits: Limits
    sockets: bool
    tcp: bool
    uid: int | None = None
    users: bool = False
    counted: bool = True
    home: Path | None = None
    terminals: Sequence[int] = ()
    groups: Sequence[int] = ()

    def argv(self, argv: Sequence[str]) -> list[str]:
        """How to start `argv` by it. Raises Unusable."""
        machine = this_machine()
        if machine is None:
            raise Unusable(
                f"The system calls of a machine of the kind {os.uname().machine} are not known: "
                "use an x86-64 or ARM64 one."
            )
        # In a user namespace, or as a user who is nobody else, they are counted by themselves.
        others = 0 if self.counted else threads_of(os.geteuid())
        told = {
            "groups": list(self.groups),
            "uid": self.uid,
            "users": self.users,
            "limits": self.limits.resources(others),
            "folder": str(self.folder),
            "home": _text(self.home),
            "landlock": landlock(),
            "reads": _texts(self.reads),
            "writes": _texts(self.writes),
            "devices": _texts(self.devices),
            "terminals": list(self.terminals),
            "tcp": self.tcp,
            "filter": base64.b64encode(program(machine, self.sockets)).decode(),
        }
        return [str(PYTHON), "-I", "-S", str(ENTER), json.dumps(told), *argv]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _texts(paths: Iterable[Path]) -> list[str]:
    return [str(path) for path in paths]
