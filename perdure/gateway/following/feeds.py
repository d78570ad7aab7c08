"""The feeds of users: the statuses of all of a user's conversations, as they change.

A conversation that is followed in this process tells of each change. Of the others, Temporal tells
when a turn begins or ends; their status is then read from the log.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from perdure.agent.loop.start import ConversationStatus
from perdure.api.frames import FeedFrame, NoticeFrame, StatusFrame
from perdure.api.notices import notice_of_status
from perdure.client.client import Client
from perdure.client.logged_status import read_logged_status
from perdure.errors import ClientError, NotFound
from perdure.gateway.following.change_watch import Change, ChangeWatch
from perdure.gateway.following.permissions import Permission
from perdure.storage.cache import Cache
from perdure.storage.errors import StoreError
from perdure.temporal.names import DEFAULT_USER, conversation_id_of, owner_of

logger = logging.getLogger("perdure.gateway")

COLLECT_SECONDS = 0.25
"""Seconds for which changes are collected: of several of a conversation, the last one counts."""

MAX_KNOWN = 10_000
"""Conversations of a user whose status is remembered, so that it is not sent twice."""

MAX_NOTICES = 100
"""Notices that wait for a slow client; older ones are dropped."""

RequireVisible = Callable[[str, str, str], Awaitable[None]]
"""Raises NotFound for a conversation, by its user, its id and its name, that is hidden."""


@dataclass(eq=False)
class FeedClient:
    """A client of a feed; of each conversation, the newest frame waits for it."""

    permissions: tuple[Permission, ...] = ()
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: bool = False
    _statuses: dict[str, FeedFrame] = field(default_factory=dict)
    _notices: list[FeedFrame] = field(default_factory=list)

    def put(self, frame: FeedFrame) -> None:
        if isinstance(frame.frame, NoticeFrame):
            self._notices = [*self._notices[1 - MAX_NOTICES :], frame]
        else:
            self._statuses.pop(frame.conversation_id, None)
            self._statuses[frame.conversation_id] = frame
        self.wake.set()

    async def batches(self) -> AsyncGenerator[list[FeedFrame], None]:
        """Yield the frames, as many at once as there are, until the client may not read more."""
        while not self.is_closed:
            try:
                for permission in self.permissions:
                    await permission.ensure()
            except ClientError:
                return
            self.wake.clear()
            frames = [*self._notices, *self._statuses.values()]
            self._notices, self._statuses = [], {}
            if frames:
                yield frames
            else:
                await self.wake.wait()


class _UserFeed:
    """The feed of one user, which all of his clients have."""

    def __init__(self, client: Client, require_visible: RequireVisible | None) -> None:
        self.clients: list[FeedClient] = []
        self._client = client
        self._require_visible = require_visible
        self._changed: dict[str, ConversationStatus | None] = {}
        self._sent: Cache[str, ConversationStatus | None] = Cache(MAX_KNOWN)
        self._wake = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    def note_change(self, conversation_id: str, status: ConversationStatus | None = None) -> None:
        """Note that a conversation has changed; without its status, that is read from the log."""
        self._changed[conversation_id] = status or self._changed.get(conversation_id)
        self._wake.set()

    def send(self, frame: FeedFrame) -> None:
        for client in self.clients:
            client.put(frame)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(COLLECT_SECONDS)
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for conversation_id, status in changed.items():
                try:
                    await self._tell(conversation_id, status)
                except (ClientError, StoreError) as error:
                    logger.info("the feed lacks a change of %s: %s", conversation_id, error)
                except Exception:
                    logger.exception("the feed lacks a change of %s", conversation_id)

    async def _tell(self, conversation_id: str, status: ConversationStatus | None) -> None:
        log = self._client.conversation(conversation_id).log
        status = status or await read_logged_status(log)
        known = self._sent.get(conversation_id)
        if status is None or known == status:
            return
        self._sent.put(conversation_id, status)
        if status.status == "closed" and self._require_visible is not None:
            try:  # who hides a conversation closes it
                await self._require_visible(log.user_id, conversation_id, conversation_id)
            except NotFound:
                self.send(FeedFrame(conversation_id=conversation_id, removed=True))
                return
        self.send(FeedFrame(conversation_id=conversation_id, frame=StatusFrame(status=status)))
        if (notice := notice_of_status(status, known)) is not None:
            self.send(FeedFrame(conversation_id=conversation_id, frame=notice))


class Feeds:
    """The feeds that somebody reads in this process."""

    def __init__(
        self, client: Client, changes: ChangeWatch, require_visible: RequireVisible | None = None
    ) -> None:
        self._client = client
        self._changes = changes
        self._require_visible = require_visible
        self._feeds: dict[str, _UserFeed] = {}
        self._listening = ExitStack()

    @contextmanager
    def attach(self, user_id: str) -> Iterator[FeedClient]:
        """Attach a client to a user's feed while inside."""
        client = FeedClient()
        if not self._feeds:
            self._listening.enter_context(self._changes.listen(self._take_change))
        feed = self._feeds.get(user_id)
        if feed is None:
            as_user = self._client.as_user(user_id)
            feed = self._feeds[user_id] = _UserFeed(as_user, self._require_visible)
        feed.clients.append(client)
        try:
            yield client
        finally:
            feed.clients.remove(client)
            if not feed.clients:
                feed.task.cancel()
                del self._feeds[user_id]
            if not self._feeds:
                self._listening.close()

    def count_clients(self, user_id: str) -> int:
        return len(self._feeds[user_id].clients) if user_id in self._feeds else 0

    def take_status(self, user_id: str, status: ConversationStatus) -> None:
        """Take a status that a conversation has got just now."""
        if (feed := self._feeds.get(user_id)) is not None:
            feed.note_change(status.conversation_id, status)

    def take_notice(self, user_id: str, conversation_id: str, notice: NoticeFrame) -> None:
        if (feed := self._feeds.get(user_id)) is not None:
            feed.send(FeedFrame(conversation_id=conversation_id, frame=notice))

    def remove(self, user_id: str, conversation_id: str) -> None:
        """Say that a conversation has left the list of its user."""
        if (feed := self._feeds.get(user_id)) is not None:
            feed.send(FeedFrame(conversation_id=conversation_id, removed=True))

    async def close(self) -> None:
        """End the connections of all clients."""
        for feed in self._feeds.values():
            for client in feed.clients:
                client.is_closed = True
                client.wake.set()

    def _take_change(self, change: Change) -> None:
        feed = self._feeds.get(owner_of(change.workflow_id) or DEFAULT_USER)
        if feed is not None:
            feed.note_change(conversation_id_of(change.workflow_id))
