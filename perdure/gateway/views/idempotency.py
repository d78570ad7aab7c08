"""`Idempotency-Key`: a request that is sent again does nothing that it has not done.

Ids follow from the user and the key, so that nothing has to be remembered: the log knows the ids of
its messages.
"""

from typing import Annotated, TypeAlias

from fastapi import Header

from perdure.events.content import join_text
from perdure.events.messages import MessageEvent
from perdure.gateway.errors import Refused
from perdure.storage.log.event_log import EventLog

IdempotencyKey: TypeAlias = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same key again makes no second conversation or message.",
    ),
]


MASK = "<secret:"
"""How what the log has in place of a secret begins: such a message cannot be compared."""


async def require_same_text(log: EventLog, seq: int, text: str) -> None:
    """Raise Refused if the message in a slot has another text: the key was that of another."""
    event = (await log.get(seq)).event
    recorded = join_text(event.llm_message.content) if isinstance(event, MessageEvent) else text
    if recorded != text and MASK not in recorded:
        raise Refused(
            422,
            "idempotency_key_reused",
            "The Idempotency-Key is that of another message, which is in the log.",
            "Send this one with a key of its own.",
        )
