"""Whose a noted value is, by how its key begins."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from agent.misfit import quoted

Scope: TypeAlias = Literal["own", "user", "app"]

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


class Scoped(NamedTuple):
    """`name` is the key without its scope."""

    scope: Scope
    name: str


def scoped(key: str) -> Scoped:
    """`user:` values are shared by all conversations of a user, `app:` values by all there are."""
    if key.startswith("user:"):
        return Scoped("user", key.removeprefix("user:"))
    if key.startswith("app:"):
        return Scoped("app", key.removeprefix("app:"))
    return Scoped("own", key)


def wrong_key(keys: Iterable[str]) -> str | None:
    """What is wrong with the first key that cannot be noted, in a sentence; none: all can.

    The name of a shared value becomes part of an object's key.
    """
    for key in keys:
        scope, name = scoped(key)
        if scope != "own" and not _NAME.fullmatch(name):
            return (
                f"{quoted(key)} cannot be shared: after {scope}: use 1 to 128 letters, digits and "
                "'.', '_', '-'."
            )
        if not key:
            return "A value of the state needs a key: it is empty."
    return None
