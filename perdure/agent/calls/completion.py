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

    def usage_with_names(self) -> Usage:
        """Return the usage with the model's name in the response, if it was asked by another."""
        if self.model == self.usage.model:
            return self.usage
        return self.usage.model_copy(update={"served_model": self.model})
