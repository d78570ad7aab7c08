"""Clients of a server: `python -m bench.gateway.watchers URL KEY KIND EACH FILE < ids`.

EACH clients of KIND attach to each conversation named on a line of the input: by `socket` or
`stream` to a gateway, or by `openhands` to an agent-server of OpenHands. They stay until the input
ends behind an empty line. What they got is written to FILE: each client with its conversation, its
events and the times at which these came, and what went wrong.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.gateway.followers import FOLLOWERS, PART, Follow
from perdure.operations.worker.process import find_loop_factory

CONNECT_AT_ONCE = 20

ATTACH_SECONDS = 120.0
"""Seconds that a client has for its first frame, from when it is its turn to connect."""


@dataclass
class BenchClient:
    """A client of one conversation, and when it got which event.

    `received` has the event's slot, or its id where there are no slots, and the time by the clock
    that all processes share.
    """

    conversation_id: str
    received: list[tuple[int | str, float]] = field(default_factory=list)
    parts: int = 0
    is_attached: bool = False
    fault: str = ""

    async def run(self, follow: Follow, url: str, key: str, turns: asyncio.Semaphore) -> None:
        """Follow the conversation, until this is cancelled or the connection ends."""
        try:
            frames = follow(url, key, self.conversation_id)
            async with turns, asyncio.timeout(ATTACH_SECONDS):
                self._take(await anext(frames))
            async for event in frames:
                self._take(event)
            self.fault = "the connection ended"
        except TimeoutError:
            self.fault = f"no frame came within {ATTACH_SECONDS:.0f} s"
        except StopAsyncIteration:
            self.fault = "the connection ended before its first frame"
        except Exception as error:
            self.fault = repr(error)

    def _take(self, event: int | str | None) -> None:
        now = time.monotonic()
        self.is_attached = True
        if event == PART:
            self.parts += 1
        elif event is not None:
            self.received.append((event, now))


async def run() -> None:
    url, key, kind, each, file = sys.argv[1:]
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    clients: list[BenchClient] = []
    while conversation_id := (await lines.readline()).decode().strip():
        clients += (BenchClient(conversation_id) for _ in range(int(each)))
    turns = asyncio.Semaphore(CONNECT_AT_ONCE)
    follow = FOLLOWERS[kind]
    tasks = [asyncio.create_task(client.run(follow, url, key, turns)) for client in clients]
    while not all(client.is_attached or client.fault for client in clients):
        await asyncio.sleep(0.05)
    print("attached", flush=True)
    await lines.read()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    Path(file).write_text(json.dumps([vars(client) for client in clients]))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(run())
