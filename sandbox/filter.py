"""Which system calls a program in a sandbox may make, as the kernel's filter (seccomp) wants it.

What is not named here is allowed. A call that is newer than this list is answered as if the kernel
were older, and a program for another kind of machine (32 bits) is killed at its first call.
"""

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from sandbox.calls import LAST, Machine

Instruction: TypeAlias = tuple[int, int, int, int]
"""Of classic BPF: code, jump where true, jump where false, operand."""

_LOAD, _RETURN = 0x20, 0x06
_EQUAL, _GREATER, _BITS = 0x15, 0x25, 0x45
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_TO_END = 255
"""Stands for a jump to the end of a rule until its length is known."""

SET_ID = 0o6000
CREATING = 0o100 | 0o20000000
"""O_CREAT, and what tells O_TMPFILE."""

NAMESPACES = 0x7E020000
TIME_NAMESPACE = 0x80
TYPING_FOR_OTHERS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI and TIOCLINUX put words into a terminal; TIOCSETD changes what drives it."""

_FORBIDDEN = (
    # what the machine is made of: mounts, modules, clocks, its name
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "setns", "init_module", "finit_module"),
    *("delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "iopl", "ioperm", "quotactl", "quotactl_fd", "vhangup", "syslog"),
    # wide doors into the kernel, which no ordinary program goes through
    *("bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "kcmp"),
    *("open_by_handle_at", "fanotify_init", "lookup_dcookie", "nfsservctl", "memfd_secret"),
)
_NOT_THERE = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2")
"""What these do is told in memory, where a filter cannot look; programs know to do without."""


@dataclass(frozen=True)
class Test:
    """Of one argument: whether it has any of the bits, is one of the values, or is none of them."""

    argument: int
    holds: Literal["bits", "one of", "none of"]
    values: tuple[int, ...]

    def instructions(self) -> list[Instruction]:
        load = (_LOAD, 0, 0, _ARGUMENTS + 8 * self.argument)
        if self.holds == "bits":
            return [load, (_BITS, 0, _TO_END, self.values[0])]
        if self.holds == "none of":
            return [load, *((_EQUAL, _TO_END, 0, value) for value in self.values)]
        *others, last = self.values
        jumps = [(_EQUAL, len(others) - at, 0, value) for at, value in enumerate(others)]
        return [load, *jumps, (_EQUAL, 0, _TO_END, last)]


@dataclass(frozen=True)
class Rule:
    """A call fails with `error` where all of the tests hold."""

    call: str
    error: int
    tests: tuple[Test, ...] = ()

    def instructions(self, number: int) -> list[Instruction]:
        body = [*chain.from_iterable(test.instructions() for test in self.tests)]
        body.append((_RETURN, 0, 0, _ERROR | self.error))
        if self.tests:
            body.append((_LOAD, 0, 0, _NUMBER))
        end = len(body) - 1  # where the number of the call is loaded again
        placed = [
            (code, *(end - at - 1 if jump == _TO_END else jump for jump in jumps), operand)
            for at, (code, *jumps, operand) in enumerate(body)
        ]
        return [(_EQUAL, 0, len(body), number), *placed]  # type: ignore[list-item]


def program(machine: Machine, sockets: bool) -> bytes:
    """The filter; without `sockets` there is none but the pairs that processes share."""
    instructions: list[Instruction] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, LAST),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for rule in _rules(sockets):
        if (number := machine.calls.get(rule.call)) is not None:
            instructions += rule.instructions(number)
    instructions.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *one) for one in instructions)


def _rules(sockets: bool) -> Iterator[Rule]:
    yield from (Rule(call, errno.EPERM) for call in _FORBIDDEN)
    yield from (Rule(call, errno.ENOSYS) for call in _NOT_THERE)
    yield Rule("clone", errno.EPERM, (Test(0, "bits", (NAMESPACES,)),))
    yield Rule("unshare", errno.EPERM, (Test(0, "bits", (NAMESPACES | TIME_NAMESPACE,)),))
    # Of others' limits, also where they are the same user's and cannot be signalled.
    yield Rule("prlimit64", errno.EPERM, (Test(0, "none of", (0,)),))
    yield Rule("ioctl", errno.EPERM, (Test(1, "one of", TYPING_FOR_OTHERS),))
    # A set-id program that is left in the workspace is for somebody outside to run.
    for call, mode in {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}.items():
        yield Rule(call, errno.EPERM, (Test(mode, "bits", (SET_ID,)),))
    for call, mode in {"mknod": 1, "mknodat": 2}.items():
        yield Rule(call, errno.EPERM, (Test(mode, "bits", (SET_ID,)),))
    for call, flags in {"open": 1, "openat": 2}.items():
        tests = (Test(flags, "bits", (CREATING,)), Test(flags + 1, "bits", (SET_ID,)))
        yield Rule(call, errno.EPERM, tests)
    families: tuple[int, ...] = ()
    if sockets:
        families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
    yield Rule("socket", errno.EAFNOSUPPORT, _only(families))
    yield Rule("socketpair", errno.EAFNOSUPPORT, _only((socket.AF_UNIX,)))


def _only(families: tuple[int, ...]) -> tuple[Test, ...]:
    return (Test(0, "none of", tuple(map(int, families))),) if families else ()
