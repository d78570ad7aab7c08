"""The followers of a gateway process, one for each conversation that somebody watches."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Iterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import TypeAlias

from perdure.api.frames import ErrorFrame, FeedFrame, Frame, NoticeFrame
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import ClientError, NotFound
from perdure.gateway.following.attachment import Attachment
from perdure.gateway.following.change_watch import ChangeWatch
from perdure.gateway.following.feeds import FeedClient, Feeds, RequireVisible
from perdure.gateway.following.follower import EntryListener, Follower
from perdure.gateway.following.pacing import Pacing
from perdure.gateway.following.permissions import Check, Permission, Permissions
from perdure.gateway.following.settings import FollowingLimits
from perdure.storage.granted_store import GrantedStore

SHUTDOWN = ErrorFrame(
    code="shutdown", detail="This gateway ends: connect again with your cursor, to any."
)
UNWATCHED = ErrorFrame(code="internal", detail="Nobody has watched the conversation for a while.")

REMOVED = ErrorFrame(code="not_found", detail="The conversation was deleted.")

DETACH_HINT = "Detach one, or try again later."

ConversationKey: TypeAlias = tuple[str, str]
"""The user whose conversation it is, and its id."""


class TooManyClients(ClientError):
    """As many clients as there may be are attached to the conversation."""


class Followers:
    """The followers of a process: each lives while clients are attached, and a while longer."""

    def __init__(
        self,
        client: Client,
        limits: FollowingLimits | None = None,
        require_visible: RequireVisible | None = None,
        on_entry: EntryListener | None = None,
    ) -> None:
        self._on_entry = on_entry
        self.limits = limits or FollowingLimits()
        self.changes = ChangeWatch(client, self.limits.change_interval)
        self.feeds = Feeds(client, self.changes, require_visible)
        self._client = client
        self._pacing = Pacing(self.limits)
        self._permissions = Permissions(self.limits.check_interval, self.limits.checks_per_second)
        self._followers: dict[ConversationKey, Follower] = {}
        self._leaving: dict[ConversationKey, asyncio.TimerHandle] = {}
        self._is_closed = False

    @asynccontextmanager
    async def attach(
        self,
        conversation: Conversation,
        after_seq: int = -1,
        checks: Mapping[Hashable, Check] | None = None,
    ) -> AsyncIterator[Attachment]:
        """Attach a client to a conversation, which it has a handle of, while inside.

        It gets the slots after `after_seq`, as long as none of the `checks` fails; what one of them
        finds out counts for all clients that have one with the same name. Raises NotFound,
        TooManyClients, Unreachable and the errors of the store.
        """
        log = conversation.log
        key = (log.user_id, log.conversation_id)
        await self._require(conversation)
        with self._hold(key) as follower:
            await asyncio.shield(follower.ready)
            attachment = Attachment(follower, follower.log, after_seq)
            checks = {**(checks or {}), **_grant_checks(conversation)}
            with self._depend(attachment.wake, checks) as attachment.permissions:
                follower.watch_steps()
                yield attachment

    async def follow(
        self, user_id: str, conversation_id: str, owner: str | None = None, after_seq: int = -1
    ) -> AsyncGenerator[Frame, None]:
        """Yield the frames of a conversation as a client of `user_id` gets them.

        Raises what `attach` raises.
        """
        conversation = self._client.as_user(user_id).conversation(conversation_id, owner)
        async with (
            self.attach(conversation, after_seq) as attachment,
            aclosing(attachment.batches()) as batches,
        ):
            async for batch in batches:
                for frame in batch:
                    yield frame.frame

    def hint(self, owner: str, conversation_id: str) -> None:
        """Say that a conversation has just been asked for something in this process."""
        if (follower := self._followers.get((owner, conversation_id))) is not None:
            follower.hint()

    def notify(self, owner: str, conversation_id: str, notice: NoticeFrame) -> None:
        """Send a notice to the clients that are attached to a conversation in this process."""
        if (follower := self._followers.get((owner, conversation_id))) is not None:
            follower.notify(notice)
        self.feeds.take_notice(owner, conversation_id, notice)

    def remove(self, owner: str, conversation_id: str) -> None:
        """Detach all clients of a conversation that was hidden or deleted in this process."""
        key = (owner, conversation_id)
        if (timer := self._leaving.pop(key, None)) is not None:
            timer.cancel()
        if (follower := self._followers.pop(key, None)) is not None:
            follower.stop(REMOVED)
        self.feeds.remove(owner, conversation_id)

    def check_grants(self, user_id: str) -> None:
        """Have the grants for a user checked again: one was revoked in this process."""
        self._permissions.expire(
            lambda key: isinstance(key, tuple) and key[:2] == ("grant", user_id)
        )

    @contextmanager
    def attach_to_feed(
        self, user_id: str, checks: Mapping[Hashable, Check] | None = None
    ) -> Iterator[FeedClient]:
        """Attach a client to the feed of a user while inside. Raises TooManyClients."""
        if self.feeds.count_clients(user_id) >= self.limits.clients:
            message = f"{self.limits.clients} clients are attached to the feed already."
            raise TooManyClients(message, DETACH_HINT)
        with (
            self.feeds.attach(user_id) as client,
            self._depend(client.wake, checks or {}) as client.permissions,
        ):
            yield client

    async def feed(self, user_id: str) -> AsyncGenerator[FeedFrame, None]:
        """Yield what changes in the conversations of a user. Raises TooManyClients."""
        with self.attach_to_feed(user_id) as client:
            async with aclosing(client.batches()) as batches:
                async for batch in batches:
                    for frame in batch:
                        yield frame

    def count_clients(self, owner: str, conversation_id: str) -> int:
        """Count the clients that are attached to a conversation in this process."""
        follower = self._followers.get((owner, conversation_id))
        return follower.clients if follower is not None else 0

    async def close(self) -> None:
        """End all followers; their clients are told to connect again."""
        self._is_closed = True
        await self.feeds.close()
        for timer in self._leaving.values():
            timer.cancel()
        self._leaving.clear()
        followers = list(self._followers.values())
        for follower in followers:
            follower.stop(SHUTDOWN)
        await asyncio.gather(*(follower.wait_closed() for follower in followers))
        self._followers.clear()

    async def _require(self, conversation: Conversation) -> None:
        """Raise NotFound for a conversation that does not exist, or is not for this client."""
        store, log = conversation.log.store, conversation.log
        if isinstance(store, GrantedStore):
            await store.require("read")
        follower = self._followers.get((log.user_id, log.conversation_id))
        if follower is not None and follower.state.next_seq > 0:
            return
        if await log.end() == 0 and not await conversation.workflow.is_running():
            raise NotFound.for_conversation(conversation.id)

    @contextmanager
    def _hold(self, key: ConversationKey) -> Iterator[Follower]:
        """Return the follower of a conversation, which is kept while inside."""
        follower = self._find(key)
        if follower.clients >= self.limits.clients:
            message = f"{self.limits.clients} clients are attached to the conversation already."
            raise TooManyClients(message, DETACH_HINT)
        follower.clients += 1
        if (timer := self._leaving.pop(key, None)) is not None:
            timer.cancel()
        try:
            yield follower
        finally:
            follower.clients -= 1
            if follower.clients == 0 and self._followers.get(key) is follower:
                loop = asyncio.get_running_loop()
                release = loop.call_later(self.limits.linger, self._release, key)
                self._leaving[key] = release

    def _find(self, key: ConversationKey) -> Follower:
        follower = self._followers.get(key)
        if follower is None or follower.end is not None:
            owner, conversation_id = key
            conversation = self._client.as_user(owner).conversation(conversation_id)
            tell = partial(self.feeds.take_status, owner)
            follower = Follower(
                conversation, self.changes, self._pacing, self.limits, tell, self._on_entry
            )
            self._followers[key] = follower
            if self._is_closed:
                follower.stop(SHUTDOWN)
        return follower

    def _release(self, key: ConversationKey) -> None:
        self._leaving.pop(key, None)
        self._followers.pop(key).stop(UNWATCHED)

    @contextmanager
    def _depend(
        self, wake: asyncio.Event, checks: Mapping[Hashable, Check]
    ) -> Iterator[tuple[Permission, ...]]:
        """Make a client depend on these checks while inside."""
        with ExitStack() as depending:
            yield tuple(
                depending.enter_context(self._permissions.depend(key, check, wake))
                for key, check in checks.items()
            )


def _grant_checks(conversation: Conversation) -> Mapping[Hashable, Check]:
    """Return the check of the grant that a client reads another's conversation by."""
    store = conversation.log.store
    if not isinstance(store, GrantedStore):
        return {}
    grant = ("grant", store.user_id, store.of)
    return {grant: partial(store.require, "read")}
