"""A target for probes: files, processes and services outside of the sandbox."""

import asyncio
import ctypes
import os
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SECRET = "a-treasure-that-nobody-in-there-may-see"
SLEEP = ("/bin/sleep", "3600")
IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


@dataclass
class Host:
    """`owner` has all of it; the sandbox gets `workspace`, and is told the `names` of the rest."""

    folder: Path
    owner: int
    victim: "subprocess.Popen[bytes]"
    terminal: int
    names: dict[str, str] = field(default_factory=dict)
    word: str = field(default_factory=lambda: f"probe{uuid.uuid4().hex}")

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    def reset(self) -> None:
        """Restore the host to the state before an attack."""
        for path in self.outside.iterdir():
            path.unlink()
        file = self.outside / "secret"
        file.write_text(SECRET)
        file.chmod(0o644)
        os.chown(file, self.owner, -1)
        with suppress(BlockingIOError):
            os.read(self.terminal, 4096)

    def read_terminal(self) -> bytes:
        """Read what was written to the other terminal."""
        try:
            return os.read(self.terminal, 4096)
        except BlockingIOError:
            return b""

    def find_processes(self) -> list[int]:
        """Processes with our word in their command line; a dead one has none."""
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if self.word.encode() in _read(path)
        ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@asynccontextmanager
async def start_host(owner: int) -> AsyncIterator[Host]:
    async with AsyncExitStack() as over:
        folder = Path(over.enter_context(tempfile.TemporaryDirectory(prefix="probed-")))
        folder.chmod(0o755)
        for name in ("workspace", "outside"):
            (folder / name).mkdir()
            os.chown(folder / name, owner, -1)
        victim = _start_victim(folder / "outside", owner)
        over.callback(_kill, victim)
        ours, theirs = os.openpty()
        over.callback(os.close, ours)
        over.callback(os.close, theirs)
        os.set_blocking(ours, False)
        os.fchown(theirs, owner, -1)
        made = Host(folder, owner, victim, ours)
        made.names = {
            "OUTSIDE": str(made.outside),
            "VICTIM": str(victim.pid),
            "TERMINAL": os.ttyname(theirs),
            "WORD": made.word,
            "SHARED": str(_shared_memory(owner, over)),
            **await _start_services(folder, owner, over),
        }
        made.reset()
        yield made


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _start_victim(folder: Path, owner: int) -> "subprocess.Popen[bytes]":
    if os.geteuid() != 0:
        return subprocess.Popen(SLEEP, env={"TREASURE": SECRET}, cwd=folder)
    return subprocess.Popen(
        SLEEP, env={"TREASURE": SECRET}, cwd=folder, user=owner, group=owner, extra_groups=[]
    )


async def _start_services(folder: Path, owner: int, over: AsyncExitStack) -> dict[str, str]:
    """Services that tell their secret to whoever comes."""

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SECRET.encode())
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    path, abstract = folder / "socket", f"\0probe-{uuid.uuid4().hex}"
    tcp = await asyncio.start_server(tell, "127.0.0.1", 0)
    named = await asyncio.start_unix_server(tell, path)
    os.chown(path, owner, -1)
    path.chmod(0o777)
    hidden = await asyncio.start_unix_server(tell, abstract)
    udp = over.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    udp.setblocking(False)
    asyncio.get_running_loop().add_reader(udp, _answer_udp, udp)
    over.callback(asyncio.get_running_loop().remove_reader, udp)
    for server in (tcp, named, hidden):
        over.push_async_callback(server.wait_closed)
        over.callback(server.close)
    return {
        "TCP": str(tcp.sockets[0].getsockname()[1]),
        "UDP": str(udp.getsockname()[1]),
        "SOCKET": str(path),
        "ABSTRACT": abstract[1:],
    }


def _answer_udp(udp: socket.socket) -> None:
    _, sender = udp.recvfrom(16)
    udp.sendto(SECRET.encode(), sender)


def _shared_memory(owner: int, over: AsyncExitStack) -> int:
    """A segment of System V memory with the secret in it."""
    segment = _libc.shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0o600)
    assert segment >= 0
    over.callback(_libc.shmctl, segment, IPC_RMID, None)
    at = _libc.shmat(segment, None, 0)
    ctypes.memmove(at, SECRET.encode(), len(SECRET))
    _libc.shmdt(ctypes.c_void_p(at))
    if os.geteuid() == 0:
        _chown_segment(segment, owner)
    return int(segment)


def _chown_segment(segment: int, owner: int) -> None:
    """IPC_SET takes a struct shmid_ds, which begins with key, uid, gid."""
    held = ctypes.create_string_buffer(256)
    assert _libc.shmctl(segment, 2, held) == 0
    ctypes.memmove(ctypes.addressof(held) + 4, owner.to_bytes(4, "little"), 4)
    assert _libc.shmctl(segment, 1, held) == 0
