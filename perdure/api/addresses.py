"""Addresses of conversations and of schedules: what others post to them arrives there."""

from typing import Annotated, TypeAlias

from pydantic import Field, model_validator

from perdure.agent.loop.signals import SIGNAL_NAME_PATTERN
from perdure.api.conversations import ConversationId
from perdure.api.schedules import ScheduleName
from perdure.events.base import Frozen, Timestamp, Tolerant

MAX_ADDRESSES = 100
"""Addresses of one user."""

ADDRESS_ID_PATTERN = "^[0-9a-f]{16}$"
ADDRESS_SECRET_PATTERN = "^[A-Za-z0-9_-]{43}$"

MAX_POST_BYTES = 64 * 1024

SigningSecret: TypeAlias = Annotated[str | None, Field(max_length=200, repr=False)]


class CreateAddress(Frozen):
    """`POST /v1/addresses`: create an address of a conversation, or of a schedule."""

    conversation_id: ConversationId | None = None
    schedule: ScheduleName | None = None
    """The schedule of which each post begins a turn, beside its times."""
    signal: Annotated[str, Field(pattern=SIGNAL_NAME_PATTERN)] | None = None
    """The signal as which posts arrive at the conversation; without one they are messages."""
    signed: bool = False
    """Whether a post needs a signature; without a `secret` of the sender's one is made."""
    secret: SigningSecret = None
    """The secret by which the sender signs: `whsec_` and 24 to 64 bytes in base64."""

    @model_validator(mode="after")
    def _has_one_target(self) -> "CreateAddress":
        if (self.conversation_id is None) == (self.schedule is None):
            raise ValueError("an address is that of a conversation, or that of a schedule")
        if self.schedule is not None and self.signal is not None:
            raise ValueError("a schedule takes no signals: leave `signal` out")
        return self


class Address(Tolerant):
    """An address of a conversation or of a schedule, without its secrets."""

    id: str
    conversation_id: str | None = None
    schedule: str | None = None
    signal: str | None = None
    """The signal as which posts arrive; without one they are messages."""
    signed: bool = False
    """Whether a post needs a signature."""
    created: Timestamp


class CreatedAddress(Address):
    """A new address, with the path at the gateway that others post to; nothing returns it again."""

    path: Annotated[str, Field(repr=False)]
    secret: SigningSecret = None
    """The secret by which the sender signs; None where posts need no signature."""


class AddressList(Tolerant):
    """`GET /v1/addresses`: the addresses of the user, the oldest first."""

    items: tuple[Address, ...]


class TakenPost(Tolerant):
    """The answer to a post: the id of its message or its signal, the same for each `webhook-id`."""

    message_id: str | None = None
    signal_id: str | None = None
