"""Clients in a process of their own."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.gateway.ending import BenchFailed, end_process, within
from bench.gateway.watchers import ATTACH_SECONDS, CONNECT_AT_ONCE
from bench.processes import measured_environment

ATTACH_SECONDS_EACH = 0.5
"""Seconds that each client may take beyond the first ones."""

DETACH_SECONDS = 120.0


@dataclass
class AttachedClients:
    """Clients of one kind; `received` has, once they are detached, what each of them got."""

    pid: int
    received: list[dict[str, Any]] = field(default_factory=list)


@asynccontextmanager
async def attach_clients(
    url: str, key: str, kind: str, each: int, conversation_ids: Sequence[str], file: Path
) -> AsyncIterator[AttachedClients]:
    """Attach so many clients to each conversation while inside. Raises BenchFailed."""
    count = each * len(conversation_ids)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.gateway.watchers", url, key, kind, str(each), str(file)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=measured_environment({}),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    clients = AttachedClients(process.pid)
    try:
        process.stdin.write("".join(f"{name}\n" for name in (*conversation_ids, "")).encode())
        longest = ATTACH_SECONDS * (1 + (count > CONNECT_AT_ONCE)) + ATTACH_SECONDS_EACH * count
        async with within(longest, f"Attaching {count} clients by {kind}"):
            line = await process.stdout.readline()
        if line.strip() != b"attached":
            raise BenchFailed(f"The process of the clients by {kind} ended before they attached.")
        yield clients
        async with within(DETACH_SECONDS, f"Detaching {count} clients by {kind}"):
            process.stdin.close()
            await process.wait()
        clients.received = json.loads(file.read_text())
    finally:
        await end_process(process)
