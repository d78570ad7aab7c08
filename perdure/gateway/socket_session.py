"""A socket on which a client follows a conversation and steers it."""

import asyncio
import contextlib
import logging

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from perdure.api.frames import (
    SOCKET_REQUEST,
    AckFrame,
    ErrorFrame,
    RespondRequest,
    SendRequest,
    SocketRequest,
)
from perdure.errors import ClientError
from perdure.events.validation_errors import describe_errors
from perdure.gateway.callers import ConversationCall, admit
from perdure.gateway.errors import STATUS_OF, STORE_DETAIL, Refused
from perdure.gateway.following.attachment import Attachment
from perdure.gateway.following.followers import TooManyClients
from perdure.gateway.following.ready_frame import make_ready
from perdure.storage.errors import StoreError

logger = logging.getLogger("perdure.gateway")

CLOSE_CODES = {
    "unauthorized": 4001,
    "scope": 4003,
    "forbidden": 4003,
    "not_found": 4004,
    "invalid": 1008,
    "shutdown": 1012,
    "slow_reader": 1013,
    "too_many_clients": 1013,
    "unreachable": 1013,
    "store_unavailable": 1013,
}
"""The close codes of the errors that end a connection.

Clients take 1000 and 1001 for a wish to end, and some connect again without a pause.
"""

OTHER_CLOSE_CODE = 1011

GONE = (WebSocketDisconnect, WebSocketDisconnected)
"""The errors of sending to a client that has left."""

MAX_REQUESTS = 16
"""Requests of one client that may be under way."""


class SocketSession:
    """A client that is attached by a socket, and its requests."""

    def __init__(self, socket: WebSocket, to: ConversationCall, attachment: Attachment) -> None:
        self._socket = socket
        self._to = to
        self._attachment = attachment
        self._timeout = to.gateway.followers.limits.send_timeout
        self._requests: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Serve the client until it leaves, or is to be detached."""
        sending = asyncio.create_task(self._send_frames())
        receiving = asyncio.create_task(self._receive_requests())
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = (sending, receiving, *self._requests)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in (sending, receiving):
            if not task.cancelled():
                task.result()

    async def _send_frames(self) -> None:
        """Send the frames as they come, and close the socket behind an error."""
        try:
            async with contextlib.aclosing(self._attachment.batches()) as batches:
                async for batch in batches:
                    for frame in batch:
                        await self._send(frame.text)
                    if frame.kind == "error":
                        reason = frame.frame
                        assert isinstance(reason, ErrorFrame)
                        await close(self._socket, reason.code, self._timeout)
        except TimeoutError:
            await close(self._socket, "slow_reader", self._timeout)
        except GONE:
            return

    async def _send(self, text: str) -> None:
        """Send a frame. Raises TimeoutError if the client does not take it."""
        async with asyncio.timeout(self._timeout):
            await self._socket.send_text(text)

    async def _receive_requests(self) -> None:
        """Take requests until the client leaves."""
        while True:
            try:
                text = await self._socket.receive_text()
            except WebSocketDisconnect:
                return
            except KeyError:  # a message of bytes
                await self._refuse("", "invalid", "Send requests as text, in JSON.")
                continue
            await self._begin_request(text)

    async def _begin_request(self, text: str) -> None:
        try:
            request = SOCKET_REQUEST.validate_json(text)
        except ValidationError as error:
            await self._refuse("", "invalid", f"The request is not right: {describe_errors(error)}")
            return
        if len(self._requests) >= MAX_REQUESTS:
            detail = f"{MAX_REQUESTS} requests are under way: wait for an answer."
            await self._refuse(request.id, "too_many_requests", detail)
            return
        task = asyncio.create_task(self._answer(request))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _answer(self, request: SocketRequest) -> None:
        """Carry a request out, and send the answer."""
        try:
            answer: AckFrame | ErrorFrame = await self._carry_out(request)
        except (ClientError, StoreError, Refused) as error:
            answer = to_error_frame(error, request.id)
        except Exception:
            logger.exception("a request %s on a socket failed", request.kind)
            detail = "This is a bug of the gateway, which its log describes."
            answer = ErrorFrame(code="internal", detail=detail, id=request.id)
        with contextlib.suppress(TimeoutError, *GONE):
            await self._send(make_ready(answer).text)

    async def _carry_out(self, request: SocketRequest) -> AckFrame:
        """Carry a request out. Raises ClientError, StoreError and Refused."""
        admit(self._to.gateway, self._to.caller.principal, "write")
        conversation = self._to.conversation
        match request:
            case SendRequest():
                self._to.gateway.agents.policy.check_images(request.images)
                async with self._sending:  # messages are recorded in the order of their requests
                    recorded = await conversation.submit(
                        request.text,
                        request.message_id,
                        images=request.images,
                        reopen=request.reopen,
                        run=request.run,
                    )
                ack = AckFrame(id=request.id, seq=recorded.seq, event_id=recorded.event_id)
            case RespondRequest():
                calls = await conversation.respond(
                    request.accept, request.calls, request.through, request.reason, request.run
                )
                ack = AckFrame(id=request.id, calls=tuple(calls))
            case _:
                await getattr(conversation, request.kind)()
                ack = AckFrame(id=request.id)
        log = conversation.log
        self._to.gateway.followers.hint(log.user_id, log.conversation_id)
        return ack

    async def _refuse(self, request_id: str, code: str, detail: str) -> None:
        with contextlib.suppress(TimeoutError, *GONE):
            answer = ErrorFrame(code=code, detail=detail, id=request_id)
            await self._send(make_ready(answer).text)


def to_error_frame(error: Exception, request_id: str | None = None) -> ErrorFrame:
    """Describe an error of the client, of the store or of the gateway itself."""
    match error:
        case Refused():
            code, detail = error.code, error.detail
        case TooManyClients():
            code, detail = "too_many_clients", str(error)
        case _:
            code = next(code for kind, (_, code) in STATUS_OF.items() if isinstance(error, kind))
            detail = STORE_DETAIL if code == "store_unavailable" else str(error)
    return ErrorFrame(code=code, detail=detail, id=request_id)


async def refuse(socket: WebSocket, reason: ErrorFrame, send_timeout: float) -> None:
    """Tell a client why it is not attached, and close its socket."""
    with contextlib.suppress(TimeoutError, *GONE):
        async with asyncio.timeout(send_timeout):
            await socket.send_text(make_ready(reason).text)
    await close(socket, reason.code, send_timeout)


async def close(socket: WebSocket, code: str, send_timeout: float) -> None:
    """Close a socket for the reason that an error's code names."""
    with contextlib.suppress(TimeoutError, *GONE):
        async with asyncio.timeout(send_timeout):
            await socket.close(CLOSE_CODES.get(code, OTHER_CLOSE_CODE))
