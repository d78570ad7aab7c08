"""The discussions that clients of a gateway process follow, each read once for all of them."""

import asyncio
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from perdure.api.discussions import DiscussionSyncFrame
from perdure.api.frames import ErrorFrame
from perdure.client.client import Client
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.errors import ClientError
from perdure.gateway.following.discussion_follower import DiscussionFollower
from perdure.gateway.following.discussion_frames import encode_frame
from perdure.gateway.following.followers import DETACH_HINT, SHUTDOWN, TooManyClients
from perdure.gateway.following.permissions import Check, Permission, Permissions
from perdure.gateway.following.settings import FollowingLimits
from perdure.storage.errors import StoreError, StoreUnavailable
from perdure.storage.granted_store import GrantedStore

RETRY_HEAD = b"retry: 1000\n"

RETRY_INTERVAL = 1.0
"""Seconds between two tries to read the log while the store does not answer."""


class DiscussionFollowers:
    """The followers of a process: each lives while clients are attached."""

    def __init__(self, client: Client, limits: FollowingLimits | None = None) -> None:
        self.limits = limits or FollowingLimits()
        self._client = client
        self._permissions = Permissions(self.limits.check_interval, self.limits.checks_per_second)
        self._followers: dict[tuple[str, str], DiscussionFollower] = {}
        self._is_closed = False

    @contextmanager
    def attach(
        self, handle: DiscussionHandle, checks: Mapping[Hashable, Check]
    ) -> Iterator["DiscussionClient"]:
        """Attach a client to a discussion, which exists, while inside.

        It gets events as long as none of the `checks` fails, and its grant, if it needs one, lasts.
        Raises TooManyClients.
        """
        follower = self._find(handle)
        if len(follower.wakes) >= self.limits.clients:
            message = f"{self.limits.clients} clients are attached to the discussion already."
            raise TooManyClients(message, DETACH_HINT)
        client = DiscussionClient(follower)
        follower.wakes.append(client.wake)
        try:
            with ExitStack() as depending:
                client.permissions = tuple(
                    depending.enter_context(self._permissions.depend(key, check, client.wake))
                    for key, check in {**checks, **_grant_checks(handle)}.items()
                )
                yield client
        finally:
            follower.wakes.remove(client.wake)
            if not follower.wakes:
                follower.stop()
                self._followers.pop((handle.owner, handle.id), None)

    def check_grants(self, user_id: str) -> None:
        """Have the grants for a user checked again: one was revoked in this process."""
        self._permissions.expire(
            lambda key: isinstance(key, tuple) and key[:2] == ("grant", user_id)
        )

    async def close(self) -> None:
        """Detach all clients; they are told to connect again."""
        self._is_closed = True
        for follower in list(self._followers.values()):
            follower.stop(SHUTDOWN)

    def _find(self, handle: DiscussionHandle) -> DiscussionFollower:
        key = (handle.owner, handle.id)
        if key not in self._followers:
            own = Discussions(self._client.as_user(handle.owner)).get(handle.id)
            self._followers[key] = DiscussionFollower(own)
            if self._is_closed:
                self._followers[key].stop(SHUTDOWN)
        return self._followers[key]


class DiscussionClient:
    """A client that is attached: it gets each event after its cursor once, and in order."""

    def __init__(self, follower: DiscussionFollower) -> None:
        self._follower = follower
        self.permissions: tuple[Permission, ...] = ()
        self.wake = asyncio.Event()
        """Is set when there may be a frame to send, or a reason to end."""

    async def frames(self, after: int, *, lasts: bool = True) -> AsyncGenerator[bytes, None]:
        """Yield chunks of frames as server-sent events; only those of now unless it `lasts`.

        The last one is an `error` frame where the client is detached for a reason of the gateway's.
        """
        yield RETRY_HEAD
        follower, status = self._follower, None
        end = await follower.begin()
        sync = DiscussionSyncFrame(from_sequence=after + 1, through_sequence=end)
        yield encode_frame(sync)
        while True:
            self.wake.clear()
            if (reason := await self._find_end()) is not None:
                yield encode_frame(reason)
                return
            try:
                while page := await follower.read(after):
                    after = page[-1].sequence
                    yield b"".join(frame.sse for frame in page)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_INTERVAL)
                continue
            except StoreError as error:
                yield encode_frame(ErrorFrame(code="damaged", detail=str(error)))
                return
            if follower.status != status:
                status = follower.status
                yield follower.encode_status()
            if not lasts:
                return
            await self.wake.wait()

    async def _find_end(self) -> ErrorFrame | None:
        """Return why the client gets nothing more, if it does not."""
        if self._follower.failure is not None:
            return self._follower.failure
        try:
            for permission in self.permissions:
                await permission.ensure()
        except ClientError as error:
            return ErrorFrame(code="not_found", detail=str(error))
        return None


def _grant_checks(handle: DiscussionHandle) -> Mapping[Hashable, Check]:
    """Return the check of the grant that a client reads another's discussion by."""
    store = handle.store
    if not isinstance(store, GrantedStore):
        return {}
    grant = ("grant", store.user_id, store.of)
    return {grant: partial(store.require, "read")}
