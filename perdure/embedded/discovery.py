"""Discovery of a running stack, without the servers' own modules, which are slow to import."""

import asyncio
from pathlib import Path

from perdure.embedded.folder import is_locked
from perdure.embedded.process import is_listening, request_status
from perdure.embedded.record import StackInfo, read_stack_info


async def find_stack(folder: Path) -> StackInfo | None:
    """Find the stack that runs in `folder` and answers."""
    info = read_stack_info(folder) if is_locked(folder) else None
    if info is None:
        return None
    temporal, store = await asyncio.gather(
        is_listening(_parse_port(info.temporal)),
        request_status("GET", _parse_port(info.store), "/healthz"),
    )
    return info if temporal and store == 200 else None


def _parse_port(address: str) -> int:
    return int(address.rpartition(":")[2])
