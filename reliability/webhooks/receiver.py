"""A receiver that fails every other time, in every way."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from perdure.webhooks.signing import ID, find_signature_error

FAILURES = ("500", "503 with Retry-After", "429", "302", "reset", "hang")
HANG_SECONDS = 20.0
"""Longer than a worker waits for an answer."""

HANG_SHARE = 0.02
"""Of the attempts: each is 15 seconds of waiting."""


@dataclass
class Receiver:
    """A receiver of posts, with those that came to each path and those that it took."""

    chance: random.Random
    secrets: dict[str, str] = field(default_factory=dict)
    """The secret of the webhook of each path."""
    bodies: dict[tuple[str, str], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """By path and id, of every attempt."""
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        place = (request.path, request.headers.get(ID, ""))
        self.counts["attempts"] += 1
        self.bodies[place].add(body)
        if find_signature_error(self.secrets[request.path], request.headers, body):
            self.findings.append(f"{place}: is not signed")
        if self.chance.random() < 0.5:
            return await self.fail(request)
        self.taken[place] += 1
        return web.Response(status=204)

    async def fail(self, request: web.Request) -> web.StreamResponse:
        is_hanging = self.chance.random() < 2 * HANG_SHARE
        kind = "hang" if is_hanging else self.chance.choice(FAILURES[:-1])
        self.counts[f"failed: {kind}"] += 1
        match kind:
            case "hang":
                await asyncio.sleep(HANG_SECONDS)
            case "reset" if request.transport is not None:
                request.transport.abort()
            case "503 with Retry-After":
                return web.Response(status=503, headers={"Retry-After": "1"})
            case "302":
                return web.Response(status=302, headers={"Location": "/elsewhere"})
        return web.Response(status=429 if kind == "429" else 500)


@asynccontextmanager
async def run_receiver(chance: random.Random) -> AsyncIterator[Receiver]:
    """Serve on a free port of the loopback."""
    receiver = Receiver(chance)
    app = web.Application()
    app.router.add_post("/{tail:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        await runner.cleanup()
