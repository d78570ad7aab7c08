"""The notices that clients receive beside the events themselves.

They follow from the log alone, so that they reach clients of every gateway, also later.
"""

from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.start import ConversationStatus
from perdure.api.frames import NoticeFrame
from perdure.events.control import InterruptEvent
from perdure.events.event import AnyEvent

TOO_MANY_CONVERSATIONS = NoticeFrame(
    type="error",
    id="AGENT_ERROR$TOO_MANY_CONVERSATIONS",
    message=(
        "Too many of your conversations were at work at once, so this one was suspended. "
        "Send a message to make it go on."
    ),
)


def notice_of_event(event: AnyEvent) -> NoticeFrame | None:
    """Return the notice for the clients that see an event as it happens, if any."""
    if isinstance(event, InterruptEvent) and event.reason is not None:
        return TOO_MANY_CONVERSATIONS
    return None


def notice_of_status(
    status: ConversationStatus, known: ConversationStatus | None = None
) -> NoticeFrame | None:
    """Return the notice for a client that learns a status only now, and knew another one."""
    if status.reason != SUSPENDED_REASON or (known is not None and known.reason == status.reason):
        return None
    return TOO_MANY_CONVERSATIONS
