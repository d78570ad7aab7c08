"""The seccomp filter: the system calls that a program in a sandbox may not make.

A call that no rule names is allowed. A call newer than `NEWEST_SYSCALL` fails with ENOSYS, as on an
older kernel; a program for another architecture (32 bits) is killed at its first call.
"""

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from perdure.sandbox.syscalls import NEWEST_SYSCALL, Machine

Instruction: TypeAlias = tuple[int, int, int, int]
"""An instruction of classic BPF: code, jump if true, jump if false, operand."""

_LOAD, _RETURN = 0x20, 0x06
_EQUAL, _GREATER, _BITS = 0x15, 0x25, 0x45
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER_OFFSET, _MACHINE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_JUMP_TO_END = 255
"""A placeholder for a jump to the end of a rule, until the rule's length is known."""

SET_ID_BITS = 0o6000
CREATE_FLAGS = 0o100 | 0o20000000
"""O_CREAT, and the bit that O_TMPFILE adds to O_DIRECTORY."""

NEW_NAMESPACE_FLAGS = 0x7E020000
NEW_TIME_NAMESPACE_FLAG = 0x80
TERMINAL_IOCTLS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI and TIOCLINUX inject input into a terminal; TIOCSETD changes its line discipline."""

_FORBIDDEN = (
    # the machine's configuration: mounts, modules, clocks, host name
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "setns", "init_module", "finit_module"),
    *("delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname"),
    *("setdomainname", "iopl", "ioperm", "quotactl", "quotactl_fd", "vhangup", "syslog"),
    # large attack surfaces that ordinary programs do not need
    *("bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl", "kcmp"),
    *("open_by_handle_at", "fanotify_init", "lookup_dcookie", "nfsservctl", "memfd_secret"),
)
_UNSUPPORTED = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2")
"""Calls with arguments in memory, where a filter cannot look; programs fall back without them."""


@dataclass(frozen=True)
class ArgumentTest:
    """A test of one argument: it has any of the bits, or is one or none of the values."""

    argument: int
    condition: Literal["bits", "one of", "none of"]
    values: tuple[int, ...]

    def instructions(self) -> list[Instruction]:
        load = (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * self.argument)
        if self.condition == "bits":
            return [load, (_BITS, 0, _JUMP_TO_END, self.values[0])]
        if self.condition == "none of":
            return [load, *((_EQUAL, _JUMP_TO_END, 0, value) for value in self.values)]
        *others, last = self.values
        jumps = [(_EQUAL, len(others) - at, 0, value) for at, value in enumerate(others)]
        return [load, *jumps, (_EQUAL, 0, _JUMP_TO_END, last)]


@dataclass(frozen=True)
class Rule:
    """A rule that makes a call fail with `error` where all of the tests hold."""

    call: str
    error: int
    tests: tuple[ArgumentTest, ...] = ()

    def instructions(self, number: int) -> list[Instruction]:
        body = [*chain.from_iterable(test.instructions() for test in self.tests)]
        body.append((_RETURN, 0, 0, _ERROR | self.error))
        if self.tests:
            body.append((_LOAD, 0, 0, _NUMBER_OFFSET))
        end = len(body) - 1  # the instruction that loads the number of the call again
        placed = [
            (code, *(end - at - 1 if jump == _JUMP_TO_END else jump for jump in jumps), operand)
            for at, (code, *jumps, operand) in enumerate(body)
        ]
        return [(_EQUAL, 0, len(body), number), *placed]  # type: ignore[list-item]


def build_filter(machine: Machine, sockets: bool) -> bytes:
    """Build the filter; without `sockets`, only socketpair(2) works."""
    instructions: list[Instruction] = [
        (_LOAD, 0, 0, _MACHINE_OFFSET),
        (_EQUAL, 1, 0, machine.audit_arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        (_GREATER, 0, 1, NEWEST_SYSCALL),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for rule in _rules(sockets):
        if (number := machine.syscalls.get(rule.call)) is not None:
            instructions += rule.instructions(number)
    instructions.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _rules(sockets: bool) -> Iterator[Rule]:
    yield from (Rule(call, errno.EPERM) for call in _FORBIDDEN)
    yield from (Rule(call, errno.ENOSYS) for call in _UNSUPPORTED)
    yield Rule("clone", errno.EPERM, (ArgumentTest(0, "bits", (NEW_NAMESPACE_FLAGS,)),))
    yield Rule(
        "unshare",
        errno.EPERM,
        (ArgumentTest(0, "bits", (NEW_NAMESPACE_FLAGS | NEW_TIME_NAMESPACE_FLAG,)),),
    )
    # Limits of other processes, even of the same user's that cannot be signalled.
    yield Rule("prlimit64", errno.EPERM, (ArgumentTest(0, "none of", (0,)),))
    yield Rule("ioctl", errno.EPERM, (ArgumentTest(1, "one of", TERMINAL_IOCTLS),))
    # A set-id program left in the workspace could be run from outside the sandbox.
    for call, mode in {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}.items():
        yield Rule(call, errno.EPERM, (ArgumentTest(mode, "bits", (SET_ID_BITS,)),))
    for call, mode in {"mknod": 1, "mknodat": 2}.items():
        yield Rule(call, errno.EPERM, (ArgumentTest(mode, "bits", (SET_ID_BITS,)),))
    for call, flags in {"open": 1, "openat": 2}.items():
        tests = (
            ArgumentTest(flags, "bits", (CREATE_FLAGS,)),
            ArgumentTest(flags + 1, "bits", (SET_ID_BITS,)),
        )
        yield Rule(call, errno.EPERM, tests)
    families: tuple[int, ...] = ()
    if sockets:
        families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
    yield Rule("socket", errno.EAFNOSUPPORT, _only_families(families))
    yield Rule("socketpair", errno.EAFNOSUPPORT, _only_families((socket.AF_UNIX,)))


def _only_families(families: tuple[int, ...]) -> tuple[ArgumentTest, ...]:
    return (ArgumentTest(0, "none of", tuple(map(int, families))),) if families else ()
