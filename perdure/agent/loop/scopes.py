"""The scope of a noted value, by the prefix of its key."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from perdure.events.validation_errors import quote

Scope: TypeAlias = Literal["own", "user", "app"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


MAX_NAMED_KEYS = 128
"""Keys of a conversation's own values that its state names."""

MAX_NAMED_KEY_BYTES = 128


class ScopedKey(NamedTuple):
    """A key split into its scope and its `name` without it."""

    scope: Scope
    name: str


def parse_key(key: str) -> ScopedKey:
    """Split off the scope: `user:` values belong to a user, `app:` values to all users."""
    if key.startswith("user:"):
        return ScopedKey("user", key.removeprefix("user:"))
    if key.startswith("app:"):
        return ScopedKey("app", key.removeprefix("app:"))
    return ScopedKey("own", key)


def find_key_error(keys: Iterable[str]) -> str | None:
    """Return a sentence on the first key that cannot be noted, or None if all can.

    The name of a shared value becomes part of an object's key.
    """
    for key in keys:
        scope, name = parse_key(key)
        if scope != "own" and not _NAME.fullmatch(name):
            return (
                f"{quote(key)} cannot be shared: after {scope}: use 1 to 128 letters, digits and "
                "'.', '_', '-'."
            )
        if not key:
            return "A value of the state needs a key: it is empty."
    return None
