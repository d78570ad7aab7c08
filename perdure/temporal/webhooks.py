"""The inputs of the workflow that delivers a webhook, and of its activities."""

from perdure.events.base import Frozen

DELIVER, RECORD_FAILURE = "webhook.deliver", "webhook.record_failure"
"""The activities: post an event, and record that nobody took it."""

FAILURE_SIGNAL = "record_webhook_failure"
"""The signal by which a conversation learns that a delivery has failed for good."""

DELIVERY_NOTE = "delivery"
"""The name of a `DeliveryNote` in the memo of a workflow."""

GONE = "Gone"
"""The type of the failure of a delivery whose receiver wants no more."""


class Patience(Frozen):
    """For how long a receiver is waited for, and an event posted again; in seconds."""

    give_up_after: float = 86_400.0
    first_delay: float = 5.0
    max_delay: float = 7200.0
    answer_timeout: float = 15.0
    """Seconds within which a receiver must answer; the standard names 15 to 30."""


class DeliveryNote(Frozen):
    """The fields of a delivery that lists show, in the memo of its workflow."""

    event_id: str
    """The header `webhook-id`."""
    event: str
    conversation_id: str | None = None
    """The conversation of the event; None for a test."""


class DeliveryOrder(DeliveryNote):
    """An event for one webhook; `body` is posted as it is at every attempt."""

    user_id: str
    webhook_id: str
    body: str
    patience: Patience = Patience()


class DeliveryFailure(Frozen):
    """A delivery that has failed for good."""

    order: DeliveryOrder
    reason: str
    is_gone: bool = False
    """Whether the receiver wants no further posts."""
