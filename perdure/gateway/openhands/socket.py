"""The socket on which OpenHands' client follows a conversation."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from time import monotonic
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from perdure.agent.loop.state import State
from perdure.api.frames import DeltaFrame, ErrorFrame, NoticeFrame
from perdure.errors import ClientError
from perdure.gateway.callers import admit
from perdure.gateway.credentials import credential_checks
from perdure.gateway.errors import Refused
from perdure.gateway.following.attachment import Attachment
from perdure.gateway.following.ready_frame import ReadyFrame
from perdure.gateway.openhands.addressing import make_call, parse_id
from perdure.gateway.openhands.answers import BadRequest
from perdure.gateway.openhands.bodies import SentMessage
from perdure.gateway.openhands.control import send as send_message
from perdure.gateway.openhands.conversation import Call
from perdure.gateway.openhands.handshake import authenticate_socket, parse_message
from perdure.gateway.openhands.search import to_timestamp
from perdure.gateway.openhands.view import SocketView
from perdure.gateway.socket_session import CLOSE_CODES, GONE, OTHER_CLOSE_CODE, to_error_frame
from perdure.storage.errors import StoreError
from perdure.storage.log.state import read_state, read_state_at

T = TypeVar("T")

logger = logging.getLogger("perdure.gateway")

FINAL_CODES = {"unauthorized": 4001, "scope": 4001, "forbidden": 4001, "invalid": 4004}
"""The close codes after which the client does not come back, besides that of `not_found`."""

ANSWER_SECONDS = 5.0
"""Seconds for which the first state waits for the answer to a request to run; later is too late."""

SHORTEST_RUN = 0.5
"""Seconds after the beginning of a run before which its end is not told: the request to run may be
answered by another gateway, and the client takes an end before the answer for none."""


async def follow(socket: WebSocket) -> None:
    """Send the events of a conversation, and take messages.

    The first message to the client is the whole state. A connection that ends is closed with 4001
    or 4004 where it is not to come back, and never with 1000 or 1001: then it would come back at
    once, over and over.
    """
    await socket.accept()
    async with AsyncExitStack() as stack:
        try:
            caller = await authenticate_socket(socket)
            call = await make_call(socket, caller, parse_id(socket))
            stack.enter_context(caller.gateway.connections.hold(caller.client.user_id))
            first = await _find_first(socket, call)
            state = await read_state(call.log)
            attachment = await stack.enter_async_context(
                caller.gateway.followers.attach(
                    call.to.conversation, min(first, state.next_seq) - 1, credential_checks(caller)
                )
            )
            view = await _make_view(call, min(first, state.next_seq), state)
        except BadRequest:
            await _close(socket, "not_found")
        except (ClientError, StoreError, Refused) as error:
            await _close(socket, to_error_frame(error).code)
        except (WebSocketDisconnect, TimeoutError):
            await _close(socket, "unauthorized")
        else:
            await SocketSession(socket, call, attachment, view, state).run()


async def _find_first(socket: WebSocket, call: Call) -> int:
    """Return the first slot that the client wants, which may be behind the last one."""
    mode = socket.query_params.get("resend_mode")
    if mode == "all":
        return 0
    after = socket.query_params.get("after_timestamp")
    if mode != "since" or after is None:
        return 2**53
    try:
        since = to_timestamp(datetime.fromisoformat(after))
    except ValueError:
        return 0
    async for event in call.door.events.read(call.log, call.native):
        if event.timestamp >= since:
            return event.seq
    return 2**53


async def _make_view(call: Call, first: int, state: State) -> SocketView:
    """Return the view of a client that has the slots before `first`."""
    then = state if first == state.next_seq else await read_state_at(call.log, first)
    return SocketView(
        state=then,
        facts=await call.facts(state),
        native=call.native,
        newest=await call.door.events.newest_time(call.log, call.native, first),
        streams=call.record.streams,
    )


class SocketSession:
    """A client that is attached, from the whole state on."""

    def __init__(
        self, socket: WebSocket, call: Call, attachment: Attachment, view: SocketView, state: State
    ) -> None:
        self._socket = socket
        self._call = call
        self._attachment = attachment
        self._view = view
        self._state = state
        self._timeout = call.to.gateway.followers.limits.send_timeout
        self._runs = view.runs
        self._began = 0.0
        self._owes_end = False
        """Whether the client has to be told that a run has ended."""
        self._sending = asyncio.Lock()
        """Is held while texts of some frames are sent, which belong together."""

    async def run(self) -> None:
        """Serve the client until it leaves, or is to be detached."""
        with self._call.door.runs.attached(self._call.key) as asked:
            work = (self._send_events(), self._receive_messages(), self._repeat_end(asked))
            tasks = [asyncio.create_task(each) for each in work]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _send_events(self) -> None:
        """Send what comes, and close the socket behind an error."""
        try:
            await self._send_first_state()
            async with contextlib.aclosing(self._attachment.batches()) as batches:
                async for batch in batches:
                    async with self._sending:
                        async for text, is_end in self._convert(batch):
                            if is_end:
                                self._owes_end = True
                                await self._tell_end()
                            else:
                                await self._send(text)
                        if self._owes_end:
                            await self._tell_end()
                    if batch and batch[-1].kind == "error":
                        reason = batch[-1].frame
                        assert isinstance(reason, ErrorFrame)
                        await _close(self._socket, reason.code)
        except TimeoutError:
            await _close(self._socket, "slow_reader")
        except GONE:
            return
        except StoreError as error:
            logger.warning("a socket of %s ends: %s", self._call.to.id, error)
            await _close(self._socket, "store_unavailable")

    async def _send_first_state(self) -> None:
        """Send the whole state as it is now, whatever events follow it.

        That of the attachment may be older than the answer to a request to run: the client would
        take its rest for the end of that run.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._state = await self._read_between(lambda: read_state(self._call.log))
        except TimeoutError:
            self._state = await read_state(self._call.log)
        view = self._view
        now = SocketView(self._state, view.facts, view.native, view.facts.updated)
        await self._send(now.full_state())

    async def _convert(self, batch: list[ReadyFrame]) -> AsyncIterator[tuple[str, bool]]:
        """Yield the texts for frames, each with whether it says that a run has ended."""
        for ready in batch:
            if ready.seq is not None:
                async for each in self._read_through(ready.seq):
                    yield each
                continue
            match ready.frame if ready.kind in ("delta", "notice") else None:
                case DeltaFrame() as frame:
                    for text in self._view.take_delta(frame):
                        yield text, False
                case NoticeFrame() as frame:
                    for text in self._view.take_notice(frame):
                        yield text, False

    async def _read_through(self, seq: int) -> AsyncIterator[tuple[str, bool]]:
        """Yield the texts for the slots up to `seq` that the client lacks."""
        while (missing := seq + 1 - self._view.state.next_seq) > 0:
            entries = await self._call.log.read(self._view.state.next_seq, min(missing, 1000))
            if not entries:
                return
            for entry in entries:
                for text, is_end in self._view.take_entry(entry, entry.seq >= self._state.next_seq):
                    if self._view.runs > self._runs:
                        self._runs, self._began = self._view.runs, monotonic()
                    yield text, is_end

    async def _tell_end(self) -> None:
        """Tell the end of a run once whoever has asked to run has had the answer.

        It is told after all that is in the log, as that may have another request to run, which
        the client would take to have ended. A run at work tells its own end.
        """
        if self._view.state.status == "running":
            self._owes_end = False
            return
        await self._call.door.runs.wait_answered(self._call.key)
        await asyncio.sleep(max(0.0, SHORTEST_RUN - (monotonic() - self._began)))
        if not await self._read_between(self._has_more):
            self._owes_end = False
            await self._send(self._view.full_state())

    async def _repeat_end(self, asked: asyncio.Event) -> None:
        """Tell the end of a run again to a client that asks for a conversation at rest."""
        while True:
            await asked.wait()
            asked.clear()
            await self._call.door.runs.wait_answered(self._call.key)
            async with self._sending:
                if self._view.state.at_rest and not await self._read_between(self._has_more):
                    with contextlib.suppress(TimeoutError, *GONE):
                        await self._send(self._view.full_state())

    async def _read_between(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read while nobody asks to run."""
        return await self._call.door.runs.read_between(self._call.key, read)

    async def _has_more(self) -> bool:
        """Tell whether the log has events that the client was not sent yet."""
        return bool(await self._call.log.read(self._view.state.next_seq, 1))

    async def _receive_messages(self) -> None:
        """Take messages until the client leaves."""
        while True:
            try:
                text = await self._socket.receive_text()
            except WebSocketDisconnect:
                return
            except KeyError:  # bytes
                continue
            message = parse_message(text)
            if message.get("type") != "auth":
                await self._take_message(message)

    async def _take_message(self, message: dict[str, Any]) -> None:
        """Send a message to the agent, and make it run; the client is told nothing of an error."""
        try:
            sent = SentMessage.model_validate({**message, "run": True})
            admit(self._call.to.gateway, self._call.to.caller.principal, "write")
            await send_message(self._call, sent)
            self._call.to.gateway.followers.hint(*self._call.key)
        except ValidationError:
            logger.info("a message on a socket of %s cannot be read", self._call.to.id)
        except (ClientError, StoreError, Refused) as error:
            logger.info("a message on a socket of %s is refused: %s", self._call.to.id, error)

    async def _send(self, text: str) -> None:
        """Send a text. Raises TimeoutError if the client does not take it."""
        async with asyncio.timeout(self._timeout):
            await self._socket.send_text(text)


async def _close(socket: WebSocket, code: str) -> None:
    """Close a socket for the reason that an error's code names."""
    number = FINAL_CODES.get(code) or CLOSE_CODES.get(code, OTHER_CLOSE_CODE)
    with contextlib.suppress(TimeoutError, RuntimeError, *GONE):
        async with asyncio.timeout(5.0):
            await socket.close(number)


ROUTES = [WebSocketRoute("/sockets/events/{conversation_id}", follow)]
