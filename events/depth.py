"""How deep lists and objects lie in each other.

Each who writes and reads JSON has a limit of its own, so what comes from outside is held to one
that is lower than all of them: Temporal's payloads are read up to 200 levels, with what is around.
"""

from typing import Any

DEEPEST = 64
"""Levels of what others send: more is not meant to be read by anybody."""


def is_deeper(value: Any, most: int = DEEPEST) -> bool:
    """Whether it has more levels than that; a value that holds nothing else has none."""
    level = [value]
    for _ in range(most + 1):
        parts = (one.values() if isinstance(one, dict) else one for one in level if _holds(one))
        level = [inner for part in parts for inner in part]
    return bool(level)


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)
