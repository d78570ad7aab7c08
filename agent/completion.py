"""One answer of a model, as it was received and recorded, before it became events."""

from events.base import Frozen, Timestamp
from events.content import Message
from events.usage import Usage


class Completion(Frozen):
    """`received` is the moment that every event made from this answer carries."""

    id: str
    model: str
    message: Message
    finish_reason: str | None = None
    usage: Usage = Usage()
    received: Timestamp
