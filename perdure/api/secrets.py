"""The requests and responses about the secrets that users hand in."""

from typing import Annotated, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen, Tolerant

MAX_DESCRIPTION_CHARS = 500

Description: TypeAlias = Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS)]


class PutSecret(Frozen):
    """`PUT /v1/secrets/{name}`: hand a secret in, in place of one of the same name.

    Nothing returns the value: commands that name the secret have it, and nobody else.
    """

    value: Annotated[str, Field(repr=False, max_length=64 * 1024)]
    """8 to 65,536 bytes of UTF-8 without NULs."""
    description: Description = ""
    """What it is for: an agent that may use the secret is told so."""


class Secret(Tolerant):
    """A secret of the user without its value; `updated` is UTC."""

    name: str
    description: str = ""
    updated: str


class Secrets(Tolerant):
    """`GET /v1/secrets`: the secrets of the user, by name."""

    items: tuple[Secret, ...]
