"""Resources with a path of their own at a gateway, which may be another user's."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from perdure.api.conversations import Grants, ShareConversation
from perdure.client.http.address import grant_path
from perdure.client.http.connection import Connection
from perdure.client.http.problems import build_body
from perdure.storage.grants import Access, Grant

T = TypeVar("T")


@dataclass(frozen=True)
class HttpResource:
    """A conversation, a batch or a discussion at its path; every request names its owner.

    `owner` is the user whose it is, if that is another one than the client's. Methods raise what
    those of `Connection` raise.
    """

    connection: Connection
    path: str
    owner: str | None

    async def get(self, path: str, kind: type[T], **query: Any) -> T:
        return await self.connection.get(self.path + path, kind, owner=self.owner, **query)

    async def post(
        self, path: str, kind: type[T], body: BaseModel | None = None, **options: Any
    ) -> T:
        return await self.connection.post(self.path + path, kind, body, owner=self.owner, **options)

    async def patch(self, kind: type[T], body: BaseModel, max_wait: float) -> T:
        return await self.connection.patch(self.path, kind, body, max_wait, owner=self.owner)

    async def delete(self) -> None:
        await self.connection.delete(self.path, owner=self.owner)

    async def grant(self, user_id: str, access: Access) -> None:
        """Grant another user access. Raises Invalid for a bad user id, too."""
        path = grant_path(self.path, user_id)
        body = build_body(ShareConversation, access=access)
        await self.connection.put(path, body, owner=self.owner)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back. Raises Invalid for a bad user id, too."""
        await self.connection.delete(grant_path(self.path, user_id), owner=self.owner)

    async def list_grants(self) -> list[Grant]:
        listed = await self.get("/grants", Grants)
        return [Grant(user_id=each.user_id, access=each.access) for each in listed.items]
