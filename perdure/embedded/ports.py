"""The TCP ports of servers: chosen once, and remembered from start to start."""

import random
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from perdure.embedded.errors import PortTaken
from perdure.embedded.folder import write_private

PORTS = TypeAdapter(dict[str, int])


def choose_ports(
    file: Path,
    names: Sequence[str],
    wanted: Mapping[str, int] | None = None,
    span: int = 0,
    report: Callable[[str], None] | None = None,
    others: Collection[int] = (),
) -> dict[str, int]:
    """Choose a free port for each name, and remember them in `file`.

    The ports of `wanted` are taken, else those that were remembered; where another program has one
    of these meanwhile, another port is chosen and `report` is called with a line that says so. Each
    port that is chosen has a free one `span` above it; none is one of `others`, which servers that
    start at the same time will have. Raises PortTaken for a port of `wanted`.
    """
    remembered = _read(file)
    ports = {name: _check_wanted(port) for name, port in (wanted or {}).items()}
    used = {*others, *ports.values()}
    for name in names:
        if name in ports:
            continue
        port = remembered.get(name)
        if port is None or {port, port + span} & used or not are_free(port, span):
            if port is not None and report is not None:
                report(f"Port {port} is not free any more: {name} takes another one.")
            port = _find_fresh_port(span, used)
        ports[name] = port
        used |= {port, port + span}
    if ports != remembered:
        write_private(file, PORTS.dump_json(ports).decode())
    return ports


def _find_fresh_port(span: int, used: Collection[int]) -> int:
    return next(port for port in _free_ports(span) if not {port, port + span} & set(used))


def find_free_ports(count: int, span: int = 0) -> list[int]:
    """Find `count` free TCP ports, each of which has a free one `span` above it.

    They lie below the range of outgoing connections, so that none is taken meanwhile.
    """
    return list(islice(_free_ports(span), count))


def _free_ports(span: int) -> Iterator[int]:
    ports = random.sample(range(10_000, 32_768), 22_768)
    return (port for port in ports if are_free(port, span))


def are_free(port: int, span: int = 0) -> bool:
    """Tell whether a server can listen on `port`, and on the port `span` above it."""
    return all(map(_is_free, {port, port + span}))


def parse_port(address: str) -> int:
    """Return the port of HOST:PORT, or of a URL without a path."""
    return int(address.rpartition(":")[2])


def _is_free(port: int) -> bool:
    # Only with this option a port counts as free whose last connections have just ended.
    for address in ("127.0.0.1", ""):
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((address, port))
            except OSError:
                return False
    return True


def _check_wanted(port: int) -> int:
    if not are_free(port):
        owner = _find_listener(port) or "another program listens there, or it is reserved"
        hint = "Name another one, or leave the option out"
        raise PortTaken(f"Port {port} cannot be had: {owner}. {hint}.")
    return port


def _find_listener(port: int) -> str:
    """Name the program that listens on `port`; empty where /proc does not tell."""
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    texts = (table.read_text() for table in tables if table.exists())
    rows = [row.split() for text in texts for row in text.splitlines()]
    sockets = {
        f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")
    }
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has ended, or is another user's
            if str(link.readlink()) in sockets:
                name = (link.parents[1] / "comm").read_text().strip()
                return f"{name} (pid {link.parents[1].name}) listens there"
    return ""


def _read(file: Path) -> dict[str, int]:
    """Read the remembered ports; a file that is damaged has none."""
    try:
        return PORTS.validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return {}
