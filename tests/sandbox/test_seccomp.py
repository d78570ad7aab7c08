"""The seccomp filter gives the right verdict on every known architecture."""

import errno
import struct

import pytest

from perdure.sandbox.seccomp import MACHINES, NEWEST_SYSCALL, Machine, build_filter

ALLOWED = 0x7FFF0000
KILLED = 0x80000000


def refused(number: int) -> int:
    return 0x00050000 | number


def verdict(machine: Machine, name: str, *arguments: int, sockets: bool = True) -> int:
    return run(
        build_filter(machine, sockets), machine.audit_arch, machine.syscalls[name], arguments
    )


def run(filter_: bytes, audit: int, number: int, arguments: tuple[int, ...]) -> int:
    """Run a filter on the kernel's small machine."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, audit, 0, *padded)
    at, held = 0, 0
    instructions = list(struct.iter_unpack("=HBBI", filter_))
    while True:
        code, then, otherwise, operand = instructions[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, operand)
            case 0x06:
                return int(operand)
            case 0x15:
                at += then if held == operand else otherwise
            case 0x25:
                at += then if held > operand else otherwise
            case 0x45:
                at += then if held & operand else otherwise


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_filter_rejects_forbidden_calls_and_allows_the_rest(machine: Machine) -> None:
    for name in ("mount", "bpf", "keyctl", "setns", "reboot", "kexec_load", "pivot_root"):
        assert verdict(machine, name) == refused(errno.EPERM), name
    for name in ("clone3", "io_uring_setup", "openat2"):
        assert verdict(machine, name) == refused(errno.ENOSYS), name
    filter_ = build_filter(machine, sockets=True)
    forbidden = [
        n for n in range(NEWEST_SYSCALL) if run(filter_, machine.audit_arch, n, ()) != ALLOWED
    ]
    assert set(forbidden) <= set(machine.syscalls.values())
    assert run(filter_, machine.audit_arch, NEWEST_SYSCALL + 1, ()) == refused(errno.ENOSYS)
    assert run(filter_, 0x40000003, 1, ()) == KILLED


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("clone", (17,), 0),
        ("clone", (0x10000000 | 17,), errno.EPERM),
        ("unshare", (0x400,), 0),
        ("unshare", (0x20000,), errno.EPERM),
        ("ioctl", (0, 0x5401), 0),
        ("ioctl", (0, 0x5412), errno.EPERM),
        ("ioctl", (0, 0x5423), errno.EPERM),
        ("ioctl", (0, 1 << 32 | 0x5412), errno.EPERM),
        ("fchmod", (3, 0o1777), 0),
        ("fchmod", (3, 0o4755), errno.EPERM),
        ("fchmodat", (3, 0, 0o2755), errno.EPERM),
        ("openat", (3, 0, 0o100, 0o644), 0),
        ("openat", (3, 0, 0, 0o4755), 0),
        ("openat", (3, 0, 0o101, 0o4755), errno.EPERM),
        ("prlimit64", (0, 7), 0),
        ("prlimit64", (4711, 7), errno.EPERM),
        ("socket", (1, 1), 0),
        ("socket", (10, 1), 0),
        ("socket", (17, 3), errno.EAFNOSUPPORT),
        ("socket", (40, 1), errno.EAFNOSUPPORT),
        ("socketpair", (1, 1), 0),
        ("socketpair", (2, 1), errno.EAFNOSUPPORT),
    ],
)
def test_arguments_decide(
    machine: Machine, name: str, arguments: tuple[int, ...], error: int
) -> None:
    assert verdict(machine, name, *arguments) == (refused(error) if error else ALLOWED)


def test_without_sockets_only_pairs_are_left() -> None:
    machine = MACHINES["x86_64"]
    assert verdict(machine, "socket", 1, 1, sockets=False) == refused(errno.EAFNOSUPPORT)
    assert verdict(machine, "socketpair", 1, 1, sockets=False) == ALLOWED
