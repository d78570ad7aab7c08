"""The frames of a conversation as server-sent events."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.types import Receive, Scope, Send

from perdure.gateway.callers import ToRead
from perdure.gateway.credentials import credential_checks
from perdure.gateway.errors import Refused
from perdure.gateway.following.followers import Followers, TooManyClients
from perdure.gateway.following.ready_frame import ReadyFrame
from perdure.gateway.following.settings import FollowingLimits

logger = logging.getLogger("perdure.gateway")

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["following"])

MAX_CHUNK = 64 * 1024
"""Bytes after which a batch of frames is sent in two parts: a client has time for each."""

RETRY_HEAD = b"retry: 1000\n"
"""Asks a browser to connect again after one second."""

AfterSeq = Annotated[int, Query(ge=-1, le=2**53, description="The last slot that is known.")]


class FrameStream(EventSourceResponse):
    """A response of server-sent events; `stack` is closed when it ends, however it does."""

    media_type = "text/event-stream"

    def __init__(
        self, content: AsyncIterator[bytes], stack: AsyncExitStack, limits: FollowingLimits
    ) -> None:
        super().__init__(
            content, sep="\n", ping=limits.ping_interval, send_timeout=limits.send_timeout
        )
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            try:
                await super().__call__(scope, receive, send)
            except SendTimeoutError:
                logger.info("a client took no frame for %s s, and is cut off", self.send_timeout)


@router.get("/stream", response_class=FrameStream, status_code=200)
async def stream_frames(
    to: ToRead,
    after_seq: AfterSeq = -1,
    last_event_id: Annotated[int | None, Header(ge=-1, le=2**53)] = None,
    follow: Annotated[bool, Query(description="Whether to go on after what is there now.")] = True,
) -> FrameStream:
    """Stream the frames of a conversation after a slot: `Last-Event-ID`, or else `after_seq`."""
    followers: Followers = to.gateway.followers
    cursor = after_seq if last_event_id is None else last_event_id
    async with AsyncExitStack() as stack:
        stack.enter_context(to.gateway.connections.hold(to.client.user_id))
        try:
            attachment = await stack.enter_async_context(
                followers.attach(to.conversation, cursor, credential_checks(to.caller))
            )
        except TooManyClients as error:
            raise refuse_client(error) from error
        return FrameStream(
            encode_frames(attachment.batches(lasts=follow)), stack.pop_all(), followers.limits
        )


def refuse_client(error: TooManyClients) -> Refused:
    headers = {"Retry-After": "10"}
    return Refused(429, "too_many_clients", str(error), error.hint, headers)


async def encode_frames(batches: AsyncGenerator[list[ReadyFrame], None]) -> AsyncIterator[bytes]:
    """Yield frames as chunks of the body."""
    yield RETRY_HEAD
    chunk: list[bytes] = []
    size = 0
    async with aclosing(batches):
        async for batch in batches:
            for frame in batch:
                chunk.append(frame.sse)
                size += len(frame.sse)
                if size >= MAX_CHUNK:
                    yield b"".join(chunk)
                    chunk, size = [], 0
            if chunk:
                yield b"".join(chunk)
                chunk, size = [], 0
