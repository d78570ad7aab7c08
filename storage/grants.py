"""Grants: what a user lets other users do with a conversation, a batch or a discussion.

A grant is an object beside what it is for, so that a process without Temporal can check it, and it
alone decides. A mark among the objects of the other user says where a grant may be: it is written
first and stays, so that no grant is without one, whatever happens in between.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import ValidationError

from perdure.events.base import Frozen
from perdure.storage import keys
from perdure.storage.errors import Altered
from perdure.storage.store import Store, list_keys

Access: TypeAlias = Literal["read", "write"]
"""`read` lets a user read and follow what is shared, `write` also steer it."""

Kind: TypeAlias = Literal["conversation", "batch", "discussion"]

_PREFIXES = {
    "conversation": keys.conversation_prefix,
    "batch": keys.batch_prefix,
    "discussion": keys.discussion_prefix,
}


class Grant(Frozen):
    """The access of a user to what is another's."""

    user_id: str
    access: Access


@dataclass(frozen=True)
class Shareable:
    """A conversation or a discussion by its id, or a batch by its name.

    Raises ValueError for an invalid one.
    """

    kind: Kind
    owner: str
    id: str

    prefix: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", _PREFIXES[self.kind](self.owner, self.id))

    @property
    def name(self) -> str:
        """The name by which other users address it."""
        return f"{self.owner}/{self.id}"

    def grant_key(self, user_id: str) -> str:
        return self.prefix + keys.grant_key(user_id)

    def mark_key(self, user_id: str) -> str:
        return f"{keys.shared_prefix(user_id, self.kind)}{self.owner}/{self.id}"


async def save_grant(store: Store, of: Shareable, grant: Grant) -> None:
    """Save a grant in place of an earlier one. Raises ValueError for an invalid user id."""
    await store.create(of.mark_key(grant.user_id), b"")
    await store.replace(of.grant_key(grant.user_id), grant.model_dump_json().encode())


async def delete_grant(store: Store, of: Shareable, user_id: str) -> None:
    """Delete the grant of a user, if there is one. Raises ValueError for an invalid user id."""
    await store.delete(of.grant_key(user_id))


async def read_access(store: Store, of: Shareable, user_id: str) -> Access | None:
    """Return the access of a user; None without a grant. Raises Altered, StoreUnavailable."""
    key = of.grant_key(user_id)
    grant = _parse(key, await store.read(key))
    return None if grant is None else grant.access


async def list_grants(store: Store, of: Shareable) -> list[Grant]:
    """List all grants by user. Raises Altered, StoreUnavailable."""
    listed = [key async for key in list_keys(store, of.prefix + keys.GRANTS)]
    bodies = await asyncio.gather(*map(store.read, listed))
    grants = map(_parse, listed, bodies)
    return sorted(filter(None, grants), key=lambda grant: grant.user_id)


def _parse(key: str, body: bytes | None) -> Grant | None:
    """Parse a grant, whose user has to be that of its key."""
    if body is None:
        return None
    try:
        grant = Grant.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error
    if not key.endswith(f"/{keys.grant_key(grant.user_id)}"):
        raise Altered(key)
    return grant
