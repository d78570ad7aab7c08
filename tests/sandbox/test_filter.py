"""The filter of system calls says what it is meant to say, on every machine that it knows."""

import errno
import struct

import pytest

from sandbox.calls import LAST, MACHINES, Machine
from sandbox.filter import program

ALLOWED = 0x7FFF0000
KILLED = 0x80000000


def refused(number: int) -> int:
    return 0x00050000 | number


def verdict(machine: Machine, name: str, *arguments: int, sockets: bool = True) -> int:
    return run(program(machine, sockets), machine.audit, machine.calls[name], arguments)


def run(filter_: bytes, audit: int, number: int, arguments: tuple[int, ...]) -> int:
    """What the kernel's small machine makes of it."""
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
def test_what_is_forbidden_is_and_the_rest_is_not(machine: Machine) -> None:
    for name in ("mount", "bpf", "keyctl", "setns", "reboot", "kexec_load", "pivot_root"):
        assert verdict(machine, name) == refused(errno.EPERM), name
    for name in ("clone3", "io_uring_setup", "openat2"):
        assert verdict(machine, name) == refused(errno.ENOSYS), name
    filter_ = program(machine, sockets=True)
    forbidden = [n for n in range(LAST) if run(filter_, machine.audit, n, ()) != ALLOWED]
    assert set(forbidden) <= set(machine.calls.values())
    assert run(filter_, machine.audit, LAST + 1, ()) == refused(errno.ENOSYS)
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
