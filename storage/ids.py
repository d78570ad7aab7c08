"""Ids that sort by age."""

import os
import time
import uuid


def new_sortable_id() -> str:
    """Create a UUIDv7 (RFC 9562, 5.7): milliseconds, then randomness, so that ids sort by age."""
    stamp = time.time_ns() // 1_000_000
    value = (stamp << 80) | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))
