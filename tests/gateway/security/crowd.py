"""Many connections of this machine to one gateway process, and what they cost it."""

import asyncio
import contextlib
import errno
import itertools
import resource
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

PER_ADDRESS = 4000
"""Connections from one loopback address: its ports are not endless."""

SPARE_FILES = 500
"""Files that this process keeps for itself."""


def allow_files(wanted: int) -> int:
    """Allow as many open files as this process may have; return how many sockets that leaves."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most - SPARE_FILES)


class Crowd:
    """Raw connections to a port of this machine, from as many addresses as it takes."""

    def __init__(self, port: int, receive_bytes: int | None = None) -> None:
        self._port = port
        self._receive_bytes = receive_bytes
        self._addresses = itertools.count()
        self.sockets: list[socket.socket] = []

    async def open(self) -> socket.socket:
        """Open a connection, which is kept."""
        made = socket.socket()
        made.setblocking(False)
        if self._receive_bytes is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_bytes)
        made.bind((f"127.0.0.{1 + next(self._addresses) // PER_ADDRESS}", 0))
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self._port))
        self.sockets.append(made)
        return made

    async def wait_until_closed(self) -> None:
        """Wait until the gateway has closed every connection; what comes before is read."""
        waiting = list(self.sockets)
        while waiting:
            waiting = [it for it in waiting if not _has_ended(it)]
            await asyncio.sleep(0.1)

    def close(self) -> None:
        for it in self.sockets:
            it.close()


async def send_all(connection: socket.socket, parts: Iterable[bytes]) -> None:
    """Send as long as the other side takes it."""
    with contextlib.suppress(ConnectionError):
        for part in parts:
            await asyncio.get_running_loop().sock_sendall(connection, part)


def _has_ended(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno in (errno.ECONNRESET, errno.EPIPE)


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def count_connections(pid: int, port: int) -> int:
    """Count the connections that a process has at a port of its own."""
    of_port = set(_list_inodes(port))
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += str(link.readlink()) in of_port
    return found


def _list_inodes(port: int) -> Iterator[str]:
    """Yield the names of established connections at a local port."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        is_listening = fields[3] == "0A"
        if int(fields[1].partition(":")[2], 16) == port and not is_listening:
            yield f"socket:[{fields[9]}]"
