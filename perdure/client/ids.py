"""Ids of conversations and messages."""

import os
import time
import uuid

NIL_CONVERSATION_ID = str(uuid.UUID(int=0))
"""The nil UUID (RFC 9562, 5.9), for a log that does not exist."""


def new_conversation_id() -> str:
    """Create a UUIDv7 (RFC 9562, 5.7): milliseconds, then randomness, so that ids sort by age."""
    stamp = time.time_ns() // 1_000_000
    value = (stamp << 80) | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_message_id() -> str:
    return str(uuid.uuid4())


def split_owner(name: str) -> tuple[str, str | None]:
    """Split `USER/ID` into the id of a conversation and its user, None where only the id is given.

    A user id has no slash.
    """
    owner, _, conversation_id = name.rpartition("/")
    return conversation_id, owner or None
