"""A probe: a hostile command, and the check whether it succeeded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from perdure.sandbox.seccomp import detect_machine
from tests.sandbox.host import SECRET, Host

Seen: TypeAlias = Callable[[Host, str], bool]
Who: TypeAlias = Literal["anyone", "root"]

ESCAPED = "ESC" + "APED"


def has_leaked(_: Host, output: str) -> bool:
    """Find the command's own report, or the host's secret, in its output."""
    return ESCAPED in output or SECRET in output


def is_outside_changed(host: Host, _: str) -> bool:
    """The folder outside is not as it was."""
    there = {path.name: path for path in host.outside.iterdir()}
    return set(there) != {"secret"} or there["secret"].read_text() != SECRET


@dataclass(frozen=True)
class Probe:
    """`script` is bash's, with the host's names as variables.

    `control` is who, without any sandbox, gets through on every machine (where it is harmless to
    try); `network` is whether the sandbox allows it; `gaps` are the sandboxes that do not promise
    to hold this, with the reason.
    """

    name: str
    script: str
    succeeded: Seen = has_leaked
    control: Who | None = None
    network: bool = False
    gaps: dict[str, str] = field(default_factory=dict)


def python(code: str) -> str:
    return f"python3 - $WORD <<'END'\n{PRELUDE}\n{code}\nEND"


PRELUDE = f"""
import ctypes, errno, fcntl, os, signal, socket, struct, sys, time
name = os.environ.get
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def escaped(what=''): print('{ESCAPED[:3]}' + '{ESCAPED[3:]}', what, flush=True)
def call(number, *arguments, meant=()):
    result = libc.syscall(number, *arguments)
    if result >= 0 or ctypes.get_errno() in meant: escaped(result)
    else: print(os.strerror(ctypes.get_errno()))
"""


def call_syscall(name: str, arguments: str, meant: str = "()") -> str:
    """A system call that says by its answer whether it was let through."""
    machine = detect_machine()
    assert machine is not None
    return python(f"call({machine.syscalls[name]}, {arguments}, meant={meant})")


def connect(how: str, where: str, kind: str = "SOCK_STREAM") -> str:
    return python(
        f"s = socket.socket(socket.{how}, socket.{kind}); s.settimeout(5)\n"
        f"s.connect({where})\n"
        + ("s.send(b'x')\n" if kind == "SOCK_DGRAM" else "")
        + "print(s.recv(200).decode())"
    )


def open_socket(family: str, kind: str = "SOCK_RAW", protocol: int = 0) -> str:
    return python(f"socket.socket(socket.{family}, socket.{kind}, {protocol}); escaped()")
