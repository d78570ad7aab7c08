"""The discussions of a user of a gateway."""

import uuid
from collections.abc import AsyncIterator, Mapping
from math import inf
from typing import Any

from perdure.agent.discussion.spec import DiscussionSpec
from perdure.api import discussions as api
from perdure.client.discussion.http_discussion import HttpDiscussion
from perdure.client.http.client import HttpClient
from perdure.client.http.problems import build_body
from perdure.errors import Invalid
from perdure.storage.keys import discussion_prefix
from perdure.storage.shared import Shared

MAX_PAGE = 100
"""Discussions that are asked for at once."""


class HttpDiscussions:
    """The discussions of one user of a gateway, with the methods of `Discussions`."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def start(
        self, spec: DiscussionSpec | Mapping[str, Any], session_id: str | None = None
    ) -> HttpDiscussion:
        """Start a discussion, or attach to it if it runs already; see `Discussions.start`.

        A table may name agents that the gateway's installation offers.
        """
        if isinstance(spec, DiscussionSpec):
            spec = spec.model_dump(mode="json")
        handle = self.get(session_id or f"discussion-{uuid.uuid4()}")
        body = build_body(api.StartDiscussion, discussion=dict(spec), id=handle.id)
        # A second request of the same content attaches to the discussion.
        started = await self._client.connection.post(
            "/v1/discussions", api.Discussion, body, repeatable=True, max_wait=60.0
        )
        return HttpDiscussion(handle.connection, handle.owner, handle.id, attached=started.attached)

    def get(self, session_id: str, owner: str | None = None) -> HttpDiscussion:
        """Return the handle of a discussion, existing or not. Raises Invalid for a bad id.

        `owner` is another user, who has granted access to the discussion.
        """
        own_id = self._client.user_id
        user_id = own_id if owner is None else owner
        try:
            discussion_prefix(user_id, session_id)
        except ValueError as error:
            message = f"{session_id!r} is no id of a discussion."
            raise Invalid(message, "Use letters, digits and '.', '_', '-'.") from error
        shared_by = None if user_id == own_id else user_id
        return HttpDiscussion(self._client.connection, user_id, session_id, shared_by)

    async def list_ids(self) -> list[str]:
        """List the ids of all discussions."""
        return [item.id async for item in self._pages("/v1/discussions")]

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List discussions that others share with the user, by id."""
        return [
            Shared.model_validate({"owner": it.owner, "id": it.id, "access": it.access})
            async for it in self._pages("/v1/shared/discussions", limit)
        ]

    async def _pages(self, path: str, limit: float = inf) -> AsyncIterator[api.Discussion]:
        """Yield the discussions of a list, at most `limit`."""
        cursor: str | None = None
        connection = self._client.connection
        while limit > 0:
            size = int(min(limit, MAX_PAGE))
            page = await connection.get(path, api.Discussions, limit=size, cursor=cursor)
            for item in page.items:
                yield item
            limit -= len(page.items)
            if (cursor := page.next_cursor) is None:
                return
