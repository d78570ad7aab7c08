"""Whose objects the slots of a conversation are: its own, and before them those it forks."""

import json
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field

from events.base import Tolerant
from storage.errors import Altered
from storage.keys import FORK, LAST_SEQ, conversation_prefix, event_key
from storage.store import Store


class Fork(Tolerant):
    """Where a conversation begins: its slots up to `at` are those of another one.

    That one itself holds slot `at`. `sha` is the running hash over the events up to there.
    """

    user_id: str
    conversation_id: str
    at: Annotated[int, Field(ge=0, le=LAST_SEQ)]
    sha: str

    def body(self) -> bytes:
        return json.dumps(self.model_dump()).encode()


@dataclass(frozen=True)
class Holder:
    """A conversation that holds slots in objects of its own, from slot `first` on."""

    user_id: str
    conversation_id: str
    first: int

    @property
    def prefix(self) -> str:
        return conversation_prefix(self.user_id, self.conversation_id)

    def key(self, seq: int) -> str:
        return self.prefix + event_key(self.conversation_id, seq)


Lineage: TypeAlias = tuple[Holder, ...]
"""A conversation, then the one it forks, and so on: each begins before the one in front of it."""


async def lineage_of(store: Store, user_id: str, conversation_id: str) -> Lineage:
    """Asks once for each generation. Raises Altered where one cannot be read."""
    holders: list[Holder] = []
    while True:
        prefix = conversation_prefix(user_id, conversation_id)
        fork = await fork_in(store, prefix)
        holders.append(Holder(user_id, conversation_id, fork.at + 1 if fork else 0))
        if fork is None:
            return tuple(holders)
        if len(holders) > 1 and holders[-1].first >= holders[-2].first:
            raise Altered(prefix + FORK)  # nobody forks what a conversation does not hold
        user_id, conversation_id = fork.user_id, fork.conversation_id


async def fork_in(store: Store, prefix: str) -> Fork | None:
    """What the conversation under this prefix is a fork of, if it is one. Raises Altered."""
    body = await store.read(prefix + FORK)
    try:
        fork = None if body is None else Fork.model_validate_json(body)
        if fork is not None:
            conversation_prefix(fork.user_id, fork.conversation_id)
        return fork
    except ValueError as error:
        raise Altered(prefix + FORK) from error


def holder_of(lineage: Lineage, seq: int) -> Holder:
    """Who holds slot `seq`, or will once it is written."""
    return next((holder for holder in lineage if holder.first <= seq), lineage[-1])
