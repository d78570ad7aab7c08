"""The model server of the batch, which records every call and the worker that made it.

Each worker has a key of its own, so that its requests tell whose they are.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Send

from perdure.models.model import KEY_HEADER, NUMBER_HEADER, PURPOSE_HEADER
from perdure.testing import openai_format
from perdure.testing.replies import CallCounter, ReplyResponse, error_response
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure
from perdure.testing.script_player import Messages, ScriptedReply
from perdure.testing.server import serve_app
from reliability.batch_chaos.plan import MODEL, PlannedSample

SAMPLE = re.compile(r"\[#(\d+)\]")

GRADED_TEXT = re.compile(r"<answer>\n(.*?)\n</answer>", re.DOTALL)
"""What the grading model is to judge."""

SCRIPT = Script(name=MODEL, answers=(ScriptedAnswer(content="-"),))


class RequestId(NamedTuple):
    """The identity of an answer: the `number`-th of a sample for a purpose, from 0."""

    sample: int
    purpose: str
    number: int


@dataclass(eq=False)
class Call(CallCounter):
    """A request to the model: its caller, and its beginning by the monotonic clock.

    `answered` is when the last of the answer was sent; None: it never was.
    """

    request: RequestId
    worker: str
    began: float
    tell: Callable[["Call"], None] = field(repr=False)
    key: str = ""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    answered: float | None = None

    def count(self, cue: ScriptedReply, outcome: str) -> None:  # noqa: ARG002 - `asked` says more
        if outcome == "answered":
            self.answered = monotonic()
            self.tell(self)


class RecordedReply(ReplyResponse):
    """The answer to one call, under the id that the call has in the book."""

    def __init__(self, call: Call, cue: ScriptedReply) -> None:
        super().__init__(cue, call, {"stream": True})
        self.call = call

    async def _send_answer(self, send: Send) -> None:
        """Counted as answered before the last piece is sent: behind it, the caller hangs up."""
        await self._send_head(send)
        *parts, last = self._body_parts()
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(self.reply.answer.chunk_delay)
        self.call.count(self.reply, "answered")
        await send({"type": "http.response.body", "body": last})

    def _body_parts(self) -> Iterator[bytes]:
        for chunk in openai_format.chunks(self.reply, self.call.id, 0, include_usage=True):
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        yield b"data: [DONE]\n\n"


class BatchModelServer:
    """`calls` are all that were to be answered, `paid` those that were, in the order of their ends.

    `strange` are requests that nobody foresaw, as text.
    """

    def __init__(self, samples: Sequence[PlannedSample]) -> None:
        self.samples = {sample.number: sample for sample in samples}
        self.calls: list[Call] = []
        self.paid: list[Call] = []
        self.refused: Counter[int] = Counter()
        self.strange: list[str] = []
        self._news = asyncio.Event()

    async def wait_for_response(self) -> None:
        """Wait until the next response has been sent."""
        self._news.clear()
        await self._news.wait()

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self.chat, methods=["POST"])])

    async def chat(self, request: Request) -> Any:
        body = await request.json()
        request_id = _identify_request(body["messages"], request.headers)
        reply = self._reply(request_id, body["messages"]) if request_id else None
        if request_id is None or reply is None:
            self.strange.append(f"{request_id}: {str(body['messages'])[:200]}")
            return error_response(ScriptedFailure(status=400, message="Nobody foresaw that."))
        if isinstance(reply, ScriptedFailure):
            self.refused[request_id.sample] += 1
            return error_response(reply)
        worker = request.headers.get("authorization", "").removeprefix("Bearer ")
        key = request.headers.get(KEY_HEADER, "")
        call = Call(request_id, worker, monotonic(), self._take, key)
        self.calls.append(call)
        return RecordedReply(call, ScriptedReply(SCRIPT, request_id.number, reply))

    def _take(self, call: Call) -> None:
        self.paid.append(call)
        self._news.set()

    def _reply(
        self, request_id: RequestId, messages: Sequence[Mapping[str, Any]]
    ) -> ScriptedAnswer | ScriptedFailure | None:
        sample = self.samples.get(request_id.sample)
        if sample is None:
            return None
        if request_id.purpose == "grade":
            graded = GRADED_TEXT.search(str(messages[0]["content"]))
            due = sample.answer or "(no answer)"
            return sample.grade() if graded and graded[1] == due and not request_id.number else None
        if request_id.purpose or request_id.number >= len(sample.replies):
            return None
        reply = sample.replies[request_id.number]
        if isinstance(reply, ScriptedAnswer) and reply.content == "{}":
            last_message = str(messages[-1]["content"]).strip()
            return reply.model_copy(update={"content": last_message})
        return reply


def _identify_request(messages: Messages, headers: Mapping[str, str]) -> RequestId | None:
    first = next((message for message in messages if message.get("role") == "user"), {})
    sample = SAMPLE.search(str(first.get("content")))
    number = headers.get(NUMBER_HEADER, "")
    if sample is None or not number.isdecimal():
        return None
    return RequestId(int(sample[1]), headers.get(PURPOSE_HEADER, ""), int(number))


@asynccontextmanager
async def serve(oracle: BatchModelServer) -> AsyncIterator[str]:
    """Answer while inside; gives the base URL for a client."""
    async with serve_app(oracle.app()) as address:
        yield f"{address}/v1"
