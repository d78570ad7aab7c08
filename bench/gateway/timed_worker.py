"""A worker that notes when each event was appended: `python -m bench.gateway.timed_worker FILE`.

It runs until SIGTERM. A line of the file has the conversation, the slot and the time by the clock
that all processes share.
"""

import asyncio
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from perdure.activities.support.resources import Resources
from perdure.client.store import open_configured_store
from perdure.models.router import ModelRouter
from perdure.operations.process import stop_signal
from perdure.operations.worker.process import find_loop_factory
from perdure.settings.settings import load_settings
from perdure.storage.store import Store
from perdure.temporal.connect import connect
from perdure.worker import build_worker
from reliability.following.counting import CountingStore

EVENT = re.compile(r"conversations/([0-9a-f-]{36})/events/([0-9]+)_")


@dataclass
class TimedStore(CountingStore):
    """A store that writes down when each event was appended."""

    times: TextIO = field(default=sys.stdout)

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        if created and (event := EVENT.search(key)):
            self.times.write(f"{event[1]} {int(event[2])} {time.monotonic()}\n")
        return created


async def work() -> None:
    settings = load_settings()
    with Path(sys.argv[1]).open("w", buffering=1) as times:
        store: Store = TimedStore(open_configured_store(settings), times=times)
        temporal = await connect(os.environ["TEMPORAL_ADDRESS"])
        world = Resources(
            store, ModelRouter(direct=settings.direct_models), settings.data / "files"
        )
        stop = stop_signal()
        async with build_worker(temporal, settings.task_queue, world):
            print("polls", flush=True)
            await stop.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(work())
