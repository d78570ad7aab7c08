"""Discussions for programs without an event loop of their own."""

from collections.abc import Mapping
from typing import Any

from anyio.from_thread import BlockingPortal

from perdure.agent.discussion.spec import DiscussionSpec
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.client.sync import BlockingIteration, BlockingMethod, SyncClient, wait_for


class SyncDiscussionHandle:
    """A discussion whose methods wait: those of `DiscussionHandle`, by the same names."""

    def __init__(self, wrapped: DiscussionHandle, portal: BlockingPortal) -> None:
        self.wrapped = wrapped
        self.portal = portal
        self.id = wrapped.id
        self.conversation_id = wrapped.conversation_id

    spec = BlockingMethod(DiscussionHandle.spec)
    status = BlockingMethod(DiscussionHandle.status)
    result = BlockingMethod(DiscussionHandle.result)
    say = BlockingMethod(DiscussionHandle.say)
    vote = BlockingMethod(DiscussionHandle.vote)
    pause = BlockingMethod(DiscussionHandle.pause)
    resume = BlockingMethod(DiscussionHandle.resume)
    close = BlockingMethod(DiscussionHandle.close)
    grant = BlockingMethod(DiscussionHandle.grant)
    revoke = BlockingMethod(DiscussionHandle.revoke)
    grants = BlockingMethod(DiscussionHandle.grants)
    events = BlockingIteration(DiscussionHandle.events)
    stored_events = BlockingIteration(DiscussionHandle.stored_events)


class SyncDiscussions:
    """The discussions of a `SyncClient`, with methods that wait."""

    def __init__(self, wrapped: Discussions, portal: BlockingPortal) -> None:
        self.wrapped = wrapped
        self.portal = portal

    list_ids = BlockingMethod(Discussions.list_ids)
    list_shared = BlockingMethod(Discussions.list_shared)

    @classmethod
    def from_client(cls, client: SyncClient) -> "SyncDiscussions":
        """Return the discussions of a client, also of one of a gateway."""
        connected: Any = client.wrapped
        return cls(Discussions.from_client(connected), client.portal)

    def start(
        self, spec: DiscussionSpec | Mapping[str, Any], session_id: str | None = None
    ) -> SyncDiscussionHandle:
        """Start a discussion, or attach to it; see `Discussions.start`."""
        handle = wait_for(self.portal, lambda: self.wrapped.start(spec, session_id))
        return SyncDiscussionHandle(handle, self.portal)

    def get(self, session_id: str, owner: str | None = None) -> SyncDiscussionHandle:
        """Return the handle of a discussion, existing or not; see `Discussions.get`."""
        return SyncDiscussionHandle(self.wrapped.get(session_id, owner), self.portal)
