"""Lineage: the conversations whose objects hold the slots of one, its own and those it forks."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeAlias

from pydantic import Field

from perdure.events.base import Tolerant
from perdure.events.entry import Entry, parse_entry
from perdure.events.event import UnknownEvent
from perdure.storage.errors import Altered, Damaged
from perdure.storage.keys import FORK, LAST_SEQ, conversation_prefix, event_id, event_key
from perdure.storage.store import Store


class Fork(Tolerant):
    """The origin of a forked conversation: its slots up to `at` are those of another one.

    The named conversation itself holds slot `at`. `sha` is the running hash over the events up to
    there.
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

    @cached_property
    def prefix(self) -> str:
        return conversation_prefix(self.user_id, self.conversation_id)

    def key(self, seq: int) -> str:
        return self.prefix + event_key(self.conversation_id, seq)

    def slot(self, seq: int) -> tuple[str, str, int]:
        return self.user_id, self.conversation_id, seq


Lineage: TypeAlias = tuple[Holder, ...]
"""A conversation, then the one it forks, and so on: each begins before the one in front of it."""


async def read_lineage(store: Store, user_id: str, conversation_id: str) -> Lineage:
    """Read the lineage, one request a generation. Raises Altered if one cannot be read."""
    holders: list[Holder] = []
    while True:
        prefix = conversation_prefix(user_id, conversation_id)
        fork = await read_fork(store, prefix)
        holders.append(Holder(user_id, conversation_id, fork.at + 1 if fork else 0))
        if fork is None:
            return tuple(holders)
        if len(holders) > 1 and holders[-1].first >= holders[-2].first:
            raise Altered(prefix + FORK)  # only own slots can be forked
        user_id, conversation_id = fork.user_id, fork.conversation_id


async def read_fork(store: Store, prefix: str) -> Fork | None:
    """Read the fork record under this prefix; None if it is no fork. Raises Altered."""
    if (body := await store.read(prefix + FORK)) is None:
        return None
    try:
        fork = Fork.model_validate_json(body)
        conversation_prefix(fork.user_id, fork.conversation_id)
        return fork
    except ValueError as error:
        raise Altered(prefix + FORK) from error


def find_holder(lineage: Lineage, seq: int) -> Holder:
    """Return the conversation that holds slot `seq`, or will once it is written."""
    for holder in lineage:
        if holder.first <= seq:
            return holder
    return lineage[-1]


def parse_slot(holder: Holder, seq: int, body: bytes) -> Entry:
    """Parse the body of the object in slot `seq`. Raises Damaged."""
    try:
        entry = parse_entry(seq, body)
        is_known = not isinstance(entry.event, UnknownEvent)
        if is_known and entry.event.id != event_id(holder.conversation_id, seq):
            raise ValueError("it is an event of another slot")
    except ValueError as error:
        raise Damaged(seq, holder.key(seq)) from error
    return entry
