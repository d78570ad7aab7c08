"""The seccomp filter: the system calls that a program in a sandbox may not make.

A call that no rule names is allowed. A call newer than `NEWEST_SYSCALL` fails with ENOSYS, as on an
older kernel; a program for another architecture (32 bits) is killed at its first call.
"""

import errno
import platform
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Instruction: TypeAlias = tuple[int, int, int, int]
"""An instruction of classic BPF: code, jump if true, jump if false, operand."""

Rule: TypeAlias = tuple[str, int, list[Instruction]]
"""A call, which fails with an error where all of the tests of its arguments hold."""

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
NEWEST_SYSCALL = 462
"""The newest call known here, `mseal`; from 424 on, all architectures share the numbers."""

_CALLS = """
EPERM for the machine's configuration: mounts, modules, clocks, host name.
  mount 165 40                umount2 166 39              pivot_root 155 41
  chroot 161 51               move_mount 429 429          open_tree 428 428
  fsopen 430 430              fsconfig 431 431            fsmount 432 432
  fspick 433 433              mount_setattr 442 442       setns 308 268
  init_module 175 105         finit_module 313 273        delete_module 176 106
  kexec_load 246 104          kexec_file_load 320 294     reboot 169 142
  swapon 167 224              swapoff 168 225             acct 163 89
  settimeofday 164 170        clock_settime 227 112       clock_adjtime 305 266
  adjtimex 159 171            sethostname 170 161         setdomainname 171 162
  iopl 172 -                  ioperm 173 -                quotactl 179 60
  quotactl_fd 443 443         vhangup 153 58              syslog 103 116
EPERM for large attack surfaces that ordinary programs do not need.
  bpf 321 280                 perf_event_open 298 241     userfaultfd 323 282
  add_key 248 217             request_key 249 218         keyctl 250 219
  kcmp 312 272                open_by_handle_at 304 265   fanotify_init 300 262
  lookup_dcookie 212 18       nfsservctl 180 42           memfd_secret 447 447
ENOSYS for arguments in memory, where a filter cannot look; programs fall back without them.
  io_uring_setup 425 425      io_uring_enter 426 426      io_uring_register 427 427
  clone3 435 435              openat2 437 437
Some arguments are refused, see `_argument_rules`.
  open 2 -                    ioctl 16 29                 socket 41 198
  socketpair 53 199           clone 56 220                creat 85 -
  chmod 90 -                  fchmod 91 52                mknod 133 -
  openat 257 56               mknodat 259 33              fchmodat 268 53
  unshare 272 97              prlimit64 302 261           fchmodat2 452 452
"""
"""The calls with their numbers on x86-64 and ARM64, if they exist there.

Sources: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux.
"""


@dataclass(frozen=True)
class Machine:
    """An architecture: its AUDIT_ARCH_* constant and its system calls by name."""

    audit_arch: int
    syscalls: Mapping[str, int]


def _read_numbers(column: int) -> dict[str, int]:
    calls = re.findall(r"(\w+) (\d+|-) (\d+|-)", _CALLS)
    return {call[0]: int(call[column]) for call in calls if call[column] != "-"}


MACHINES = {
    "x86_64": Machine(0xC000003E, _read_numbers(1)),
    "aarch64": Machine(0xC00000B7, _read_numbers(2)),
}


def detect_machine() -> Machine | None:
    """Return this machine's architecture; None where its calls are not known here."""
    return MACHINES.get(platform.machine())


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
    for call, error, tests in (*_whole_call_rules(), *_argument_rules(sockets)):
        if (number := machine.syscalls.get(call)) is not None:
            instructions += _compile_rule(number, error, tests)
    instructions.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _compile_rule(number: int, error: int, tests: list[Instruction]) -> list[Instruction]:
    body = [*tests, (_RETURN, 0, 0, _ERROR | error)]
    if tests:
        body.append((_LOAD, 0, 0, _NUMBER_OFFSET))
    end = len(body) - 1  # the instruction that loads the number of the call again
    placed = [
        (code, *(end - at - 1 if jump == _JUMP_TO_END else jump for jump in jumps), operand)
        for at, (code, *jumps, operand) in enumerate(body)
    ]
    return [(_EQUAL, 0, len(body), number), *placed]  # type: ignore[list-item]


def _load(argument: int) -> Instruction:
    return _LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * argument


def _has_any(argument: int, bits: int) -> list[Instruction]:
    return [_load(argument), (_BITS, 0, _JUMP_TO_END, bits)]


def _is(argument: int, value: int) -> list[Instruction]:
    return [_load(argument), (_EQUAL, 0, _JUMP_TO_END, value)]


def _is_none_of(argument: int, *values: int) -> list[Instruction]:
    return [_load(argument), *((_EQUAL, _JUMP_TO_END, 0, value) for value in values)]


def _whole_call_rules() -> Iterator[Rule]:
    for error, rows in re.findall(r"(EPERM|ENOSYS) .*((?:\n  .*)+)", _CALLS):
        yield from ((call, getattr(errno, error), []) for call in re.findall(r"[a-z]\w*", rows))


def _argument_rules(sockets: bool) -> Iterator[Rule]:
    yield "clone", errno.EPERM, _has_any(0, NEW_NAMESPACE_FLAGS)
    yield "unshare", errno.EPERM, _has_any(0, NEW_NAMESPACE_FLAGS | NEW_TIME_NAMESPACE_FLAG)
    # Limits of other processes, even of the same user's that cannot be signalled.
    yield "prlimit64", errno.EPERM, _is_none_of(0, 0)
    yield from (("ioctl", errno.EPERM, _is(1, request)) for request in TERMINAL_IOCTLS)
    # A set-id program left in the workspace could be run from outside the sandbox.
    modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
    for call, mode in {**modes, "mknod": 1, "mknodat": 2}.items():
        yield call, errno.EPERM, _has_any(mode, SET_ID_BITS)
    for call, flags in {"open": 1, "openat": 2}.items():
        yield call, errno.EPERM, [*_has_any(flags, CREATE_FLAGS), *_has_any(flags + 1, SET_ID_BITS)]
    families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
    yield "socket", errno.EAFNOSUPPORT, _is_none_of(0, *families) if sockets else []
    yield "socketpair", errno.EAFNOSUPPORT, _is_none_of(0, socket.AF_UNIX)
