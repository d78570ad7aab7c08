"""Gives up what a program in a sandbox must not have, and becomes that program.

A program of its own (`python enter.py PLAN ARGV...`, Linux), because it has to run where the
sandbox is made already. PLAN is JSON; in this order

* `groups`: descriptors of control groups' lists of processes, which we enter
* `landlock`: the version of Landlock to use, 0 for none, with `reads`, `writes` and `devices` as
  paths, `terminals` as descriptors, and `tcp` for whether there is TCP; opened here, as some of
  the paths may be closed to the user that we become
* `uid`: the user to be from now on, or null
* `users`: whether to try for an own count of that user's processes
* `limits`: pairs of a resource and its limit
* `folder`: where to be
* `home`: a folder to make, or null
* `filter`: the filter of system calls, in base64
"""

import base64
import ctypes
import json
import os
import resource
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
CLONE_NEWUSER = 0x10000000
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
ALL_OF_FIRST = (1 << 13) - 1
MAKE_DEVICES = 1 << 6 | 1 << 11
BIND_AND_CONNECT_TCP = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3

READS = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

MORE_LIKELY = "500"
"""What makes the kernel end these processes before the worker's when memory is short."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_NOTHING = (ctypes.c_ulong(0),) * 3
"""What `prctl` wants for the arguments that an option does not have."""


def main(plan: dict[str, Any], argv: list[str]) -> None:
    for group in plan["groups"]:
        os.write(group, b"0")
        os.close(group)
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - pathlib starts slowly
        file.write(MORE_LIKELY)
    rules = ruleset(plan) if plan["landlock"] else None
    if plan["uid"] is not None:
        become(plan["uid"], own_count=plan["users"])
    for which, most in plan["limits"]:
        resource.setrlimit(which, (most, most))
    os.umask(0o022)
    os.chdir(plan["folder"])
    if plan["home"] is not None:
        os.makedirs(plan["home"], 0o700, exist_ok=True)  # noqa: PTH103
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        _checked(_libc.syscall(RESTRICT_SELF, rules, 0))
        os.close(rules)
    forbid(base64.b64decode(plan["filter"]))
    os.execv(argv[0], argv)


def become(uid: int, own_count: bool) -> None:
    """Another user, without groups and capabilities; `own_count` gives a user namespace."""
    os.setgroups([])
    _drop_capabilities()
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if own_count:
        # Only for the number of processes, which else all sandboxes have together: where there
        # are no user namespaces, the control group counts, or nobody.
        with suppress(OSError):
            _own_count(uid)


def _drop_capabilities() -> None:
    """None can come back, whatever is run."""
    capability = 0
    while _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), *_NOTHING) == 0:
        capability += 1


def _own_count(uid: int) -> None:
    _prctl(PR_SET_DUMPABLE, 1)  # else our own files in /proc are root's
    _checked(_libc.unshare(CLONE_NEWUSER))
    for name, line in (
        ("uid_map", f"{uid} {uid} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{uid} {uid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(line)


def ruleset(plan: dict[str, Any]) -> int:
    """For Landlock: what is not named in it cannot be opened, whatever the permissions say."""
    version = plan["landlock"]
    handled = _handled(version)
    net = BIND_AND_CONNECT_TCP if version >= 4 and not plan["tcp"] else 0
    scoped = ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", handled, net, scoped)[:size]
    rules = _checked(_libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    writes = handled & ~MAKE_DEVICES & ~IOCTL_DEV
    _allow(rules, plan["reads"], handled & READS, handled)
    _allow(rules, plan["writes"], writes, handled)
    _allow(rules, plan["devices"], handled & (OF_FILES | READ_DIR), handled)
    for terminal in {*plan["terminals"], *filter(os.isatty, (0, 1, 2))}:
        _rule(rules, terminal, handled & OF_FILES)
    return rules


def _handled(version: int) -> int:
    newer = ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
    return ALL_OF_FIRST | sum(right for since, right in newer if version >= since)


def _allow(rules: int, paths: Iterable[str], rights: int, handled: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # not every system has every one
        is_folder = os.path.isdir(path)  # noqa: PTH112
        _rule(rules, descriptor, rights if is_folder else rights & handled & OF_FILES)
        os.close(descriptor)


def _rule(rules: int, descriptor: int, rights: int) -> None:
    attributes = struct.pack("=Qi", rights, descriptor)
    _checked(_libc.syscall(ADD_RULE, rules, PATH_BENEATH, attributes, 0))


def forbid(instructions: bytes) -> None:
    """The filter, which holds from here on for this process and all that it starts."""
    held = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: the number of instructions, and where they are
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(held))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)


def _prctl(option: int, value: int, where: bytes | None = None) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), where, *_NOTHING[1:]))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        what = f" ({error.filename})" if error.filename else ""
        sys.exit(f"the sandbox cannot be entered: {error.strerror}{what}")
