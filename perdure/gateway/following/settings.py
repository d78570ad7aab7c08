"""The limits and intervals of following."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FollowingLimits:
    """The limits of a gateway process; intervals are in seconds."""

    clients: int = 50
    """Clients that may be attached to one conversation."""
    buffered_frames: int = 1000
    """Frames that a client may be behind; one that is further behind is cut off."""
    buffered_chars: int = 16 * 1024 * 1024
    send_timeout: float = 20.0
    """The time that a client may take to receive one frame."""
    linger: float = 30.0
    """The time for which a conversation is followed after its last client has left."""
    resting_polls: int = 80
    """Open workflows at rest that are watched at once, for 20 s each, before it is the turn of
    others."""
    text_interval: float = 0.25
    """The time between two looks at a text that grows: as often as steps heartbeat."""
    texts_per_second: float = 100.0
    """Looks at growing texts in a second, of all conversations together."""
    change_interval: float = 1.0
    """The time between two questions which workflows have changed."""
    check_interval: float = 3.0
    """The time between two checks of whether a client may still read."""
    checks_per_second: float = 4.0
    ping_interval: float = 15.0
