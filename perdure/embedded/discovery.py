"""Discovery of a running stack, without the servers' own modules, which are slow to import."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from perdure.embedded.folder import is_locked, read_holder
from perdure.embedded.ports import parse_port
from perdure.embedded.process import is_listening, request_status
from perdure.embedded.record import StackInfo, read_stack_info
from perdure.errors import Unreachable

MAX_WAIT = 60.0
"""Seconds to wait for a stack that starts, or whose server is started again."""

NOTE_AFTER = 1.0
POLL_INTERVAL = 0.2


async def find_stack(folder: Path) -> StackInfo | None:
    """Find the stack that runs in `folder` and answers."""
    info = read_stack_info(folder) if is_locked(folder) else None
    if info is None:
        return None
    temporal, store = await asyncio.gather(
        is_listening(parse_port(info.temporal)),
        request_status("GET", parse_port(info.store), "/healthz"),
    )
    return info if temporal and store == 200 else None


async def await_stack(
    folder: Path, report: Callable[[str], None] | None = None, max_wait: float = MAX_WAIT
) -> StackInfo | None:
    """Find the stack of `folder`; wait while it is there and does not answer yet.

    `report` is called with a line if that takes time. Raises Unreachable after `max_wait` seconds.
    """
    began, noted = monotonic(), report is None
    while (info := await find_stack(folder)) is None and is_locked(folder):
        which = f"The stack in {folder} (pid {read_holder(folder)})"
        seconds = monotonic() - began
        if seconds > max_wait:
            hint = "Its terminal says why; ^C there and `perdure dev` start it anew."
            raise Unreachable(f"{which} has not answered for {max_wait:g} s.", hint)
        if report is not None and not noted and seconds > NOTE_AFTER:
            report(f"{which} does not answer yet: waiting for it ...")
            noted = True
        await asyncio.sleep(POLL_INTERVAL)
    return info
