"""Drop privileges, apply a sandbox's restrictions, and exec the program to be confined.

A program of its own (`python launcher.py PLAN ARGV...`, Linux), because it runs inside of the
namespaces that bubblewrap has made. PLAN is JSON, applied in this order:

* `cgroups`: descriptors of the `cgroup.procs` files of the control groups to enter
* `landlock`: the version of Landlock to use, 0 for none, with `readable`, `writable` and `devices`
  as paths, `terminals` as descriptors, and `tcp` for whether TCP is allowed; the paths are opened
  before the user changes, as some of them may be closed to the new user
* `uid`: the user to become, or null
* `user_namespace`: whether to try a user namespace, in which this user's processes are counted
  by themselves
* `limits`: pairs of a resource and its limit
* `folder`: the working directory
* `home`: a folder to make, or null
* `seccomp_filter`: the filter of system calls, in base64
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
ALL_RIGHTS_V1 = (1 << 13) - 1
MAKE_DEVICES = 1 << 6 | 1 << 11
BIND_AND_CONNECT_TCP = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3

READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

OOM_SCORE_ADJUSTMENT = "500"
"""The kernel kills processes with a higher value first: these before the worker."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_UNUSED_ARGUMENTS = (ctypes.c_ulong(0),) * 3
"""Zeros for the arguments of `prctl` that an option does not use."""


def main(plan: dict[str, Any], argv: list[str]) -> None:
    for group in plan["cgroups"]:
        os.write(group, b"0")
        os.close(group)
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - pathlib starts slowly
        file.write(OOM_SCORE_ADJUSTMENT)
    ruleset = create_ruleset(plan) if plan["landlock"] else None
    if plan["uid"] is not None:
        become_user(plan["uid"], user_namespace=plan["user_namespace"])
    for resource_id, limit in plan["limits"]:
        resource.setrlimit(resource_id, (limit, limit))
    os.umask(0o022)
    os.chdir(plan["folder"])
    if plan["home"] is not None:
        os.makedirs(plan["home"], 0o700, exist_ok=True)  # noqa: PTH103
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        _check(_libc.syscall(RESTRICT_SELF, ruleset, 0))
        os.close(ruleset)
    install_filter(base64.b64decode(plan["seccomp_filter"]))
    os.execv(argv[0], argv)


def become_user(uid: int, user_namespace: bool) -> None:
    """Become `uid`, without groups and capabilities, in a user namespace if asked for."""
    os.setgroups([])
    _drop_capabilities()
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if user_namespace:
        # Only so that RLIMIT_NPROC counts this sandbox alone. Without user namespaces, the
        # control group limits the processes, or nothing does.
        with suppress(OSError):
            _enter_user_namespace(uid)


def _drop_capabilities() -> None:
    """Drop every capability from the bounding set: no program that is run can regain one."""
    capability = 0
    while _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), *_UNUSED_ARGUMENTS) == 0:
        capability += 1


def _enter_user_namespace(uid: int) -> None:
    _prctl(PR_SET_DUMPABLE, 1)  # otherwise root owns our files in /proc
    _check(_libc.unshare(CLONE_NEWUSER))
    for name, line in (
        ("uid_map", f"{uid} {uid} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{uid} {uid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(line)


def create_ruleset(plan: dict[str, Any]) -> int:
    """Create Landlock's ruleset: a path that is not in it cannot be opened, whatever its mode."""
    version = plan["landlock"]
    handled = _handled_rights(version)
    net = BIND_AND_CONNECT_TCP if version >= 4 and not plan["tcp"] else 0
    scoped = ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", handled, net, scoped)[:size]
    ruleset = _check(_libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    writes = handled & ~MAKE_DEVICES & ~IOCTL_DEV
    _allow_paths(ruleset, plan["readable"], handled & READ_RIGHTS, handled)
    _allow_paths(ruleset, plan["writable"], writes, handled)
    _allow_paths(ruleset, plan["devices"], handled & (FILE_RIGHTS | READ_DIR), handled)
    for terminal in {*plan["terminals"], *filter(os.isatty, (0, 1, 2))}:
        _add_rule(ruleset, terminal, handled & FILE_RIGHTS)
    return ruleset


def _handled_rights(version: int) -> int:
    later_rights = ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
    return ALL_RIGHTS_V1 | sum(right for since, right in later_rights if version >= since)


def _allow_paths(ruleset: int, paths: Iterable[str], rights: int, handled: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # not every system has all of these paths
        is_folder = os.path.isdir(path)  # noqa: PTH112
        _add_rule(ruleset, descriptor, rights if is_folder else rights & handled & FILE_RIGHTS)
        os.close(descriptor)


def _add_rule(ruleset: int, descriptor: int, rights: int) -> None:
    attributes = struct.pack("=Qi", rights, descriptor)
    _check(_libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, attributes, 0))


def install_filter(instructions: bytes) -> None:
    """Install the seccomp filter for this process and all that it starts."""
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: the number of instructions, and their address
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(buffer))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)


def _prctl(option: int, value: int, pointer: bytes | None = None) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), pointer, *_UNUSED_ARGUMENTS[1:]))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        file_name = f" ({error.filename})" if error.filename else ""
        sys.exit(f"the sandbox cannot be entered: {error.strerror}{file_name}")
