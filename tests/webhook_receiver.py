"""A receiver of webhooks: an HTTP server that checks signatures, and answers as it is told."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web
from standardwebhooks import Webhook


@dataclass
class Received:
    """A post as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def check(self, secret: str) -> dict[str, Any]:
        """Return the JSON of a post that is signed with the secret; raise what the library does."""
        verified = Webhook(secret).verify(self.body, self.headers)
        assert isinstance(verified, dict)
        return verified


Answer: TypeAlias = Callable[[Received], Awaitable[web.Response]]


async def take(_: Received) -> web.Response:
    return web.Response(status=204)


def say(status: int, **headers: str) -> Answer:
    async def answer(_: Received) -> web.Response:
        return web.Response(
            status=status, headers={name.replace("_", "-"): it for name, it in headers.items()}
        )

    return answer


async def hang(_: Received) -> web.Response:
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits that long")


@dataclass
class Receiver:
    """What has come, and how each path is answered: by its next answer, and by the last again."""

    url: str = ""
    posts: list[Received] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(lambda: [take]))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = Received(request.path, headers, await request.read())
        self.posts.append(received)
        answers = self.answers[request.path]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(received)

    def at(self, path: str) -> list[Received]:
        return [post for post in self.posts if post.path == path]

    async def wait_for(self, path: str, count: int = 1, timeout: float = 60) -> list[Received]:
        async with asyncio.timeout(timeout):
            while len(self.at(path)) < count:
                await asyncio.sleep(0.02)
        return self.at(path)


@asynccontextmanager
async def run_receiver(host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """Serve on a free port of a loopback address."""
    receiver = Receiver()
    app = web.Application(client_max_size=1024**2)
    app.router.add_route("*", "/{tail:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0).start()
        port = runner.addresses[0][1]
        receiver.url = f"http://{host}:{port}"
        yield receiver
    finally:
        await runner.cleanup()
