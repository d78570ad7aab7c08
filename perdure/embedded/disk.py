"""The disk of a stack's folder: what happens when it is full, and when it has room again."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from perdure.embedded.errors import DiskFull

MEGABYTE = 1_000_000

FULL = 8 * MEGABYTE
"""Free bytes below which the servers' next writes may fail."""

NEEDED = 24 * MEGABYTE
"""Free bytes with which a stack starts, and goes on after its disk was full."""

CHECK_INTERVAL = 1.0


@dataclass
class Disk:
    """The disk of `folder`; `report` is called with a line when it is full or has room again."""

    folder: Path
    report: Callable[[str], None]
    _has_room: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._has_room.set()

    def require_room(self) -> None:
        """Raises DiskFull if a stack cannot start here."""
        if self._free() < NEEDED:
            raise DiskFull(f"{self._describe()} Nothing is lost. Make room, and start again.")

    async def watch(self, on_room: Callable[[], Awaitable[None]]) -> NoReturn:
        """Watch the disk; `on_room` is awaited when it was full and has room again."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            if self._free() >= FULL:
                continue
            self._has_room.clear()
            self.report(f"{self._describe()} Nothing is lost: the work goes on when there is room.")
            while self._free() < NEEDED:  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(CHECK_INTERVAL)
            self._has_room.set()
            await on_room()
            self.report(f"The disk of {self.folder} has room again: the work goes on.")

    async def wait_for_room(self) -> bool:
        """Wait until the disk is not full; return whether it was."""
        waits = not self._has_room.is_set()
        await self._has_room.wait()
        return waits

    def _free(self) -> int:
        return shutil.disk_usage(self.folder).free

    def _describe(self) -> str:
        free = self._free() / MEGABYTE
        needed = NEEDED // MEGABYTE
        return f"The disk of {self.folder} is full: {free:.1f} MB are free, {needed} MB are needed."
