"""What changes in a user's conversations, as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing

from fastapi import APIRouter

from perdure.api.frames import FeedFrame
from perdure.gateway.callers import Reader
from perdure.gateway.credentials import credential_checks
from perdure.gateway.following.followers import TooManyClients
from perdure.gateway.routes.stream import RETRY_HEAD, FrameStream, refuse_client

router = APIRouter(tags=["following"])


@router.get("/v1/feed", response_class=FrameStream, status_code=200)
async def stream_feed(caller: Reader) -> FrameStream:
    """Stream the statuses of the user's own conversations as they change.

    What changed while no connection was open is not sent: load the list again behind it.
    """
    followers = caller.gateway.followers
    async with AsyncExitStack() as stack:
        stack.enter_context(caller.gateway.connections.hold(caller.client.user_id))
        try:
            client = stack.enter_context(
                followers.attach_to_feed(caller.client.user_id, credential_checks(caller))
            )
        except TooManyClients as error:
            raise refuse_client(error) from error
        return FrameStream(_encode(client.batches()), stack.pop_all(), followers.limits)


async def _encode(batches: AsyncGenerator[list[FeedFrame], None]) -> AsyncIterator[bytes]:
    yield RETRY_HEAD
    async with aclosing(batches):
        async for batch in batches:
            yield b"".join(map(_encode_frame, batch))


def _encode_frame(frame: FeedFrame) -> bytes:
    kind = "removed" if frame.frame is None else frame.frame.kind
    return f"event: {kind}\ndata: {frame.model_dump_json(exclude_none=True)}\n\n".encode()
