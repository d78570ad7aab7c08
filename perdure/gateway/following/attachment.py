"""The way of one client through the frames of a conversation."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from perdure.api.frames import ErrorFrame, Frame, StatusFrame, SyncFrame
from perdure.api.notices import notice_of_status
from perdure.errors import ClientError
from perdure.gateway.following.follower import Follower
from perdure.gateway.following.frame_buffer import FellBehind, Reader
from perdure.gateway.following.permissions import Permission
from perdure.gateway.following.ready_frame import ReadyFrame, make_durable, make_ready
from perdure.storage.errors import BadSlot, StoreUnavailable, explain_read_only
from perdure.storage.log.bodies import read_bodies
from perdure.storage.log.event_log import EventLog

BACKLOG_PAGE = 1000
"""Entries that are read at once for a client that is behind: the size of a segment."""

RETRY_INTERVAL = 1.0
"""Seconds between two tries to read the log while the store does not answer."""

SLOW_READER = ErrorFrame(
    code="slow_reader",
    detail="The frames were not read as fast as they came: connect again with your cursor.",
)


class Detached(Exception):
    """The reason why a client is detached, as the last frame that it gets."""

    def __init__(self, reason: ErrorFrame) -> None:
        super().__init__(reason.detail)
        self.reason = reason


class Attachment:
    """A client that is attached: it gets each slot after its cursor once, and in order."""

    def __init__(self, follower: Follower, log: EventLog, after_seq: int) -> None:
        self._follower = follower
        self._log = log
        self._next_seq = after_seq + 1
        self._status: StatusFrame | None = None
        self.permissions: tuple[Permission, ...] = ()
        self.wake = asyncio.Event()
        """Is set when there may be a frame to send, or a reason to end."""

    async def batches(self, *, lasts: bool = True) -> AsyncGenerator[list[ReadyFrame], None]:
        """Yield the frames, as many at once as there are; only those of now unless it `lasts`.

        The last one is an `error` frame where the client is detached for a reason of the gateway's.
        """
        try:
            yield self._begin()
            async with aclosing(self._read_backlog()) as backlog:
                async for batch in backlog:
                    yield await self._permit(batch)
            with self._follower.frames.read_from_end(self.wake) as reader:
                # Nothing is published between the last look at the log and here.
                yield await self._permit(self._join())
                while lasts:
                    yield await self._permit(await self._receive(reader))
        except Detached as error:
            yield [make_ready(error.reason)]

    def _begin(self) -> list[ReadyFrame]:
        through = self._follower.state.next_seq - 1
        if self._next_seq > through + 1:  # another gateway has read more of the log
            self._follower.hint()
        sync = SyncFrame(from_seq=self._next_seq, through_seq=through)
        return _make_all([sync, *self._list_status()])

    async def _read_backlog(self) -> AsyncGenerator[list[ReadyFrame], None]:
        """Yield the entries that are published already, until there is none left."""
        while (missing := self._follower.state.next_seq - self._next_seq) > 0:
            bodies = await self._read_bodies(min(missing, BACKLOG_PAGE))
            first, self._next_seq = self._next_seq, self._next_seq + len(bodies)
            yield [make_durable(seq, body) for seq, body in enumerate(bodies, first)]

    async def _read_bodies(self, limit: int) -> list[bytes]:
        while True:
            try:
                if bodies := await read_bodies(self._log, self._next_seq, limit):
                    return bodies
            except BadSlot as error:
                detail = explain_read_only(self._log.conversation_id, error)
                raise Detached(ErrorFrame(code="damaged", detail=detail)) from error
            except StoreUnavailable:
                pass
            self._check_end()
            await asyncio.sleep(RETRY_INTERVAL)

    def _join(self) -> list[ReadyFrame]:
        """Return what is at work now: what follows is in the buffer."""
        return _make_all([*self._list_status(), *self._follower.texts.so_far()])

    def _list_status(self) -> list[Frame]:
        """Return the status and the notice about it, unless the client has it."""
        newest = self._follower.status
        known = self._status.status if self._status is not None else None
        if newest is None or known == newest:
            return []
        self._status = StatusFrame(status=newest)
        notice = notice_of_status(newest, known)
        return [self._status, *([notice] if notice else [])]

    async def _receive(self, reader: Reader) -> list[ReadyFrame]:
        """Wait for frames that the client does not have. Raises Detached."""
        while True:
            try:
                taken = reader.take()
            except FellBehind:
                raise Detached(SLOW_READER) from None
            if frames := [frame for frame in taken if self._is_new(frame)]:
                return frames
            self._check_end()
            await self._check_permissions()
            await self.wake.wait()

    def _is_new(self, frame: ReadyFrame) -> bool:
        """Tell whether the client lacks a frame: its cursor may be beyond the log read here."""
        if frame.seq is None:
            return True
        if frame.seq < self._next_seq:
            return False
        self._next_seq = frame.seq + 1
        return True

    async def _permit(self, frames: list[ReadyFrame]) -> list[ReadyFrame]:
        """Return frames that the client may have. Raises Detached if it may not any more."""
        await self._check_permissions()
        return frames

    async def _check_permissions(self) -> None:
        try:
            for permission in self.permissions:
                await permission.ensure()
        except ClientError as error:
            raise Detached(ErrorFrame(code="not_found", detail=str(error))) from error

    def _check_end(self) -> None:
        if self._follower.end is not None:
            raise Detached(self._follower.end)


def _make_all(frames: Iterable[Frame]) -> list[ReadyFrame]:
    return [make_ready(frame) for frame in frames]
