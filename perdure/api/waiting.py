"""The requests to a conversation that waits: signals, and answers to questions."""

from typing import Annotated

from pydantic import Field, JsonValue

from perdure.api.conversations import Id, Text
from perdure.events.base import Frozen, Tolerant


class SendSignal(Frozen):
    """`POST …/signals/{name}`: send a signal to the agent; `data` has 32 KiB at most."""

    data: JsonValue = None
    signal_id: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """The sender's id for it: the same one again is recorded once."""


class AnswerQuestion(Frozen):
    """`POST …/answer`: answer the question that waits, by a `choice` of its own or by a `text`."""

    choice: Text | None = None
    text: Text | None = None
    call: Id | None = None
    """The tool call that asks; without, it is the one that waits now."""


class AnswerResult(Tolerant):
    """The answer as the log has it."""

    text: str
