"""The discussion that a route is about."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path

from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.gateway.callers import Caller, Owner, Reader, Writer

SESSION_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

SessionName: TypeAlias = Annotated[str, Path(pattern=SESSION_PATTERN)]


async def _find(caller: Caller, session_id: str, owner: str | None) -> DiscussionHandle:
    """Find a discussion of the user, or of an owner who has shared it. Raises NotFound."""
    handle = Discussions.from_client(caller.client).get(session_id, owner)
    await handle.spec()
    return handle


async def _find_to_read(
    caller: Reader, session_id: SessionName, owner: Owner = None
) -> DiscussionHandle:
    return await _find(caller, session_id, owner)


async def _find_to_write(
    caller: Writer, session_id: SessionName, owner: Owner = None
) -> DiscussionHandle:
    return await _find(caller, session_id, owner)


ToRead: TypeAlias = Annotated[DiscussionHandle, Depends(_find_to_read)]
ToWrite: TypeAlias = Annotated[DiscussionHandle, Depends(_find_to_write)]
