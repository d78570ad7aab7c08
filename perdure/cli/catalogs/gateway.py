"""The catalog of what a gateway lists."""

import asyncio
from collections.abc import AsyncIterator, Callable

from perdure.api.conversations import Conversation, Page
from perdure.cli.catalogs.catalog import WalkOrder
from perdure.client.http.client import HttpClient
from perdure.errors import NotFound
from perdure.storage.summary import Summary

PAGE_SIZE = 100


class GatewayCatalog:
    """The conversations and batches of the user whose key it is.

    With `shared` it walks over the conversations that others share.
    """

    def __init__(self, client: HttpClient, shared: bool = False) -> None:
        self._client = client
        self._shared = shared
        self.ids: list[str] = []

    async def newest(self) -> str | None:
        return next(iter(await self._client.list_conversations(1)), None)

    async def list_by_prefix(self, start: str, limit: int) -> list[str]:
        page = await self._load(limit=limit, prefix=start)
        return [item.id for item in page.items]

    async def list_batches(self) -> list[str]:
        from perdure.client.batch.http_batches import HttpBatches  # slow

        return await HttpBatches(self._client).list_names()

    async def summarize(self, ids: list[str]) -> list[Summary | None]:
        return await asyncio.gather(*map(self._summarize, ids))

    async def _summarize(self, name: str) -> Summary | None:
        try:
            path = self._client.conversation(name).log.path
            return to_summary(await self._client.connection.get(path, Conversation))
        except NotFound:
            return None

    async def walk(
        self,
        may_match: Callable[[str], bool],
        limit: int,
        *,
        order: WalkOrder = "newest",
        with_message: bool = False,  # noqa: ARG002 - a title begins with the first message
    ) -> AsyncIterator[Summary]:
        """Yield the summaries in order; the gateway reads a page of them at a time."""
        self.ids = []
        if order == "oldest":
            items = [item async for item in self._pages(PAGE_SIZE)]
            for item in reversed(items):
                if may_match(item.id):
                    yield to_summary(item)
            return
        async for item in self._pages(min(limit, PAGE_SIZE), order):
            if may_match(item.id):
                yield to_summary(item)

    async def _pages(self, size: int, order: WalkOrder = "newest") -> AsyncIterator[Conversation]:
        cursor: str | None = None
        while True:
            page = await self._load(size, cursor, by_activity=order == "activity")
            self.ids += [to_summary(item).id for item in page.items]
            for item in page.items:
                yield item
            if (cursor := page.next_cursor) is None:
                return

    async def _load(
        self,
        limit: int,
        cursor: str | None = None,
        prefix: str | None = None,
        by_activity: bool = False,
    ) -> Page:
        if self._shared:
            return await self._client.connection.get("/v1/shared", Page, limit=limit, cursor=cursor)
        return await self._client.connection.get(
            "/v1/conversations",
            Page,
            limit=limit,
            cursor=cursor,
            prefix=prefix,
            order="activity" if by_activity else "created",
            hidden=True,
        )


def to_summary(shown: Conversation) -> Summary:
    """Return what the gateway shows of a conversation as a summary; another's is `USER/ID`."""
    status = shown.status
    return Summary(
        id=shown.id if shown.access == "owner" else f"{shown.owner}/{shown.id}",
        status=status.status,
        phase=status.phase or status.status,
        turn=status.turn,
        events=status.next_seq,
        model=status.model,
        begun=shown.created,
        last_event=shown.updated,
        title=status.title,
        tags=status.tags,
        trouble=status.trouble,
        asks=tuple(call.model_dump(exclude={"asks"}) for call in status.pending if call.asks),
        tokens=status.spent.prompt_tokens + status.spent.completion_tokens,
        cost=status.spent.known_cost,
        usage=status.spent,
        first_message=None,
        agent=status.agent,
        app=status.app_name,
        wait=detail.wait.model_dump() if (detail := status.detail) and detail.wait else None,
        is_hidden=status.hidden,
    )
