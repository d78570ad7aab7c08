"""The scripted model: a server that knows by what is said to it which conversation goes on."""

import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from perdure.models.model import NUMBER_HEADER, ModelRefused
from perdure.testing.replies import CallCounter, ReplyResponse, error_response
from perdure.testing.script import Script, ScriptedFailure
from perdure.testing.script_player import ScriptPlayer
from perdure.testing.server import serve_app

Messages: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass
class RequestTimes:
    """The times of requests for answers, by script and number, on the clock of `monotonic`."""

    url: str = ""
    times: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def answers(self) -> int:
        return len(self.times)

    @property
    def calls(self) -> int:
        return sum(map(len, self.times.values()))

    @property
    def again(self) -> int:
        """Count the calls for an answer that had been requested before."""
        return self.calls - self.answers


class Server:
    def __init__(self, scripts: Mapping[str, Script], name_of: Callable[[Messages], str]) -> None:
        """`name_of` tells from the messages which script it is that goes on."""
        self.asked = RequestTimes()
        self._playbacks = {name: ScriptPlayer(script) for name, script in scripts.items()}
        self._name_of = name_of
        self._calls = CallCounter()

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self.chat, methods=["POST"])])

    async def chat(self, request: Request) -> Any:
        """The next answer, or a refusal that no retry helps against."""
        body = json.loads(await request.body())
        name = self._name_of(body["messages"])
        if name not in self._playbacks:
            what = "Nobody has written what is to be said to this conversation."
            return error_response(
                ScriptedFailure(status=400, message=what, code="script_not_found")
            )
        number = request.headers.get(NUMBER_HEADER, "")
        try:
            cue = self._playbacks[name].next_reply(
                body["messages"], number=int(number) if number.isdecimal() else None
            )
        except ModelRefused as error:
            return error_response(ScriptedFailure(status=400, message=str(error), code=error.code))
        self.asked.times[name, cue.number].append(time.monotonic())
        return ReplyResponse(cue, self._calls, body)


@asynccontextmanager
async def serve(
    scripts: Mapping[str, Script], name_of: Callable[[Messages], str]
) -> AsyncIterator[RequestTimes]:
    """Serve while inside."""
    server = Server(scripts, name_of)
    async with serve_app(server.app()) as address:
        server.asked.url = f"{address}/v1"
        yield server.asked


def texts(messages: Messages, role: str) -> list[str]:
    """Return the texts of the messages of this role."""
    return [_text(message.get("content")) for message in messages if message.get("role") == role]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")
