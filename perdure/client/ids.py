"""Ids of conversations and messages."""

import hashlib
import uuid

from perdure.storage.ids import new_sortable_id

NIL_CONVERSATION_ID = str(uuid.UUID(int=0))
"""The nil UUID (RFC 9562, 5.9), for a log that does not exist."""


def new_conversation_id() -> str:
    """Create an id that sorts by age."""
    return new_sortable_id()


def new_message_id() -> str:
    """Create an id that sorts by age: one that is new is never looked for in a long log."""
    return new_sortable_id()


def split_owner(name: str) -> tuple[str, str | None]:
    """Split `USER/ID` into the id of a conversation and its user, None where only the id is given.

    A user id has no slash.
    """
    owner, _, conversation_id = name.rpartition("/")
    return conversation_id, owner or None


def derive_conversation_id(user_id: str, key: str) -> str:
    """Derive the id of a conversation: a UUIDv8 (RFC 9562, 5.8), as v5 names those of programs."""
    digest = hashlib.sha256(f"conversation\0{user_id}\0{key}".encode()).digest()
    value = int.from_bytes(digest[:16])
    value = value & ~(0xF << 76) | 0x8 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def derive_message_id(user_id: str, key: str) -> str:
    digest = hashlib.sha256(f"message\0{user_id}\0{key}".encode()).hexdigest()
    return f"key-{digest[:40]}"
