"""Webhooks: posts to other servers when a conversation needs or tells something."""

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field

from perdure.api.conversations import ConversationId
from perdure.events.base import Frozen, Timestamp, Tolerant

MAX_WEBHOOKS = 50
"""Webhooks of one user: a worker has them all in memory."""

WEBHOOK_ID_PATTERN = "^[0-9a-f]{16}$"

EventName: TypeAlias = Literal["turn_end", "question", "approval", "error"]
"""What is posted: the end of a turn, a question to a person, actions that wait for an approval, and
an error or a limit that ended a turn.
"""

EVENT_NAMES: tuple[EventName, ...] = get_args(EventName)

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]


class CreateWebhook(Frozen):
    """`POST /v1/webhooks`: post the events of all conversations, or of one, to a URL."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    events: Annotated[tuple[EventName, ...], Field(min_length=1)] = EVENT_NAMES
    conversation_id: ConversationId | None = None
    """The conversation whose events are posted; without one, those of all."""


class Delivery(Tolerant):
    """An event that is or was posted; times are UTC."""

    id: str
    """The header `webhook-id`: that of the event, the same at every attempt."""
    event: str
    conversation_id: str | None = None
    """None for a test."""
    status: DeliveryStatus
    started: Timestamp
    ended: Timestamp | None = None


class WebhookRecord(Tolerant):
    """The fields of a webhook that are kept, and shown; times are UTC."""

    id: str
    url: str
    events: tuple[EventName, ...]
    conversation_id: str | None = None
    """The conversation it is about; None stands for all conversations of the user."""
    created: Timestamp
    ended: str | None = None
    """Why nothing is posted any more."""


class Webhook(WebhookRecord):
    """A webhook of a user, without its secret; times are UTC."""

    deliveries: tuple[Delivery, ...] | None = None
    """The last deliveries, the newest first; None in lists."""


class CreatedWebhook(Webhook):
    """A webhook with the secret that signs its posts, which nothing returns again."""

    secret: Annotated[str, Field(repr=False)]


class WebhookList(Tolerant):
    """`GET /v1/webhooks`: the webhooks of the user, the oldest first."""

    items: tuple[Webhook, ...]


class Post(Frozen):
    """The body of a post: the `type` is `conversation.` and the event's name, or `test`."""

    type: str
    timestamp: str
    data: dict[str, Any]


class SentTest(Tolerant):
    """`POST /v1/webhooks/{webhook_id}/test`: the id of the post that is on its way."""

    id: str
