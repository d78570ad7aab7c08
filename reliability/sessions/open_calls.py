"""A model in a process of its own, which says how long it wrote too many answers at once."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from examples.bfcl.forked import stand_alone
from perdure.testing.script import Script, ScriptedAnswer
from perdure.testing.server import ScriptedServer

MODEL = "sessions"

MARK = re.compile(r"<([a-z0-9-]+)>")
"""What the prompts of a user's conversations have in common."""

ENDLESS = ScriptedAnswer(content="word " * 600, chunk_delay=1.0)
"""An answer that ends no sooner than its conversation is suspended."""


@dataclass
class Call:
    """A request while it is answered; seconds of this process' clock."""

    begin: float
    end: float = inf


class OpenCalls:
    """An application that notes the requests to another one, and how long each is answered.

    Requests are told apart by the mark in their prompts. `/excess/MARK/LIMIT` is answered with the
    longest time in which more than so many with that mark were open.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.calls: dict[str, list[Call]] = defaultdict(list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._tell(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        body = b"".join(message.get("body", b"") for message in messages).decode()

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        call = Call(monotonic())
        for mark in set(MARK.findall(body)):
            self.calls[mark].append(call)
        try:
            await self.app(scope, replay, send)
        finally:
            call.end = monotonic()

    async def _tell(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/excess/"):
            _, _, mark, limit = Request(scope).url.path.split("/")
            excess = longest_excess(self.calls[mark], int(limit), monotonic())
            await JSONResponse(excess)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def longest_excess(calls: Sequence[Call], limit: int, now: float) -> float:
    """Return the longest time in seconds until `now` in which more than `limit` calls were open."""
    ends = [min(call.end, now) for call in calls]
    changes = sorted([*((call.begin, 1) for call in calls), *((end, -1) for end in ends)])
    longest, began, is_open = 0.0, now, 0
    for moment, change in changes:
        if is_open > limit:
            longest = max(longest, moment - began)
        before, is_open = is_open, is_open + change
        if before <= limit:
            began = moment
    return longest


def serve_model(port: int) -> None:
    """Be the model, on a port."""
    stand_alone()
    script = Script(name=MODEL, answers=(ENDLESS,), repeat=True)
    app = OpenCalls(ScriptedServer({MODEL: script}).app())
    config = uvicorn.Config(app, port=port, log_config=None, log_level="critical", lifespan="off")
    asyncio.run(uvicorn.Server(config).serve())
