"""A model's response as it was received and recorded, before it became events."""

from perdure.events.base import Frozen, Timestamp
from perdure.events.content import Message
from perdure.events.usage import Usage


class Completion(Frozen):
    """A response of a model; `received` is the timestamp of all events made from it."""

    id: str
    model: str
    message: Message
    finish_reason: str | None = None
    usage: Usage = Usage()
    received: Timestamp
