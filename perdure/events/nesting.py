"""The nesting of lists and objects.

Every reader and writer of JSON has a limit of its own, so input is held to one that is lower than
all of them: Temporal's payloads are read up to 200 levels, envelopes included.
"""

from typing import Any

MAX_DEPTH = 64  # levels


def exceeds_depth(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Check whether a value has more levels than `limit`; a scalar has none."""
    level = [value]
    for _ in range(limit + 1):
        if not level:
            return False
        parts = (list(item.values()) if isinstance(item, dict) else item for item in level)
        level = [inner for part in parts if isinstance(part, list | tuple) for inner in part]
    return bool(level)
