"""The nesting of lists and objects.

Every reader and writer of JSON has a limit of its own, so input is held to one that is lower than
all of them: Temporal's payloads are read up to 200 levels, envelopes included.
"""

from typing import Any

MAX_DEPTH = 64
"""Levels of nested lists and objects in input."""


def exceeds_depth(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Check whether a value has more levels than `limit`; a scalar has none."""
    level = [value]
    for _ in range(limit + 1):
        parts = (
            item.values() if isinstance(item, dict) else item
            for item in level
            if _is_container(item)
        )
        level = [inner for part in parts for inner in part]
    return bool(level)


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)
