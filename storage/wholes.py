"""The batch or the discussion that a conversation is a part of, by what its log says of it."""

import json
from typing import Any

from perdure.agent.discussion.spec import DiscussionKey
from perdure.agent.discussion.steps import DISCUSSION_TAG, speaker_conversation_id
from perdure.storage import keys
from perdure.storage.discussions.folder import load_spec
from perdure.storage.grants import Shareable
from perdure.storage.store import Store

UNREADABLE = (ValueError, LookupError, TypeError, RecursionError)


async def find_batch(store: Store, conversation: Shareable) -> Shareable | None:
    """Find the batch of whose sample this is the conversation, by its first event."""
    try:
        opening = await _read_value(store, conversation, 0)
        return Shareable("batch", conversation.owner, opening["trial"]["batch"])
    except UNREADABLE:  # of no sample
        return None


async def find_discussion(store: Store, conversation: Shareable) -> Shareable | None:
    """Find the discussion of whose agent this is the conversation.

    A tag in its second event names the discussion, and the conversation's id proves it.
    """
    try:
        tags = (await _read_value(store, conversation, 1))["tags"]
        named = next(tag for tag in tags if tag.startswith(DISCUSSION_TAG))
        of = Shareable("discussion", conversation.owner, named.removeprefix(DISCUSSION_TAG))
    except (*UNREADABLE, StopIteration, AttributeError):  # of no discussion
        return None
    spec = await load_spec(store, of.owner, of.id)
    key = DiscussionKey(user_id=of.owner, session_id=of.id)
    names = spec.speakers() if spec else ()
    is_part = conversation.id in (speaker_conversation_id(key, name) for name in names)
    return of if is_part else None


async def _read_value(store: Store, conversation: Shareable, seq: int) -> Any:
    """Read what an event of a conversation says of its state. Raises one of `UNREADABLE`."""
    body = await store.read(conversation.prefix + keys.event_key(conversation.id, seq))
    return json.loads(body or b"{}")["value"]
