"""The requests and responses about discussions, and the frames of one that is followed."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter

from perdure.agent.discussion.state import MAX_CONTRIBUTION_BYTES, DiscussionStatus
from perdure.api.frames import ErrorFrame
from perdure.api.json_object import JsonObject
from perdure.events.base import Frozen, Tolerant
from perdure.events.discussion import DiscussionEventId, SessionId, Speaker

ContributedText: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_CONTRIBUTION_BYTES)
]


class StartDiscussion(Frozen):
    """`POST /v1/discussions`: start a discussion, or attach to it if it runs already.

    `discussion` has the keys that the file of a discussion has; its `agent`, and that of each of
    its agents, may be the name of one that the installation offers.
    """

    discussion: JsonObject
    id: SessionId | None = None


class Discussion(Tolerant):
    """A discussion with its status."""

    id: str
    topic: str
    agents: tuple[str, ...]
    phases: tuple[str, ...]
    status: DiscussionStatus
    conversations: dict[str, str] = Field(default_factory=dict)
    """The ids of the conversations in which the agents, and the moderator's model, take turns."""
    owner: str = ""
    access: Literal["owner", "read", "write"] = "owner"
    attached: bool = False
    """The discussion was running already when it was to be started."""


class Discussions(Tolerant):
    """The discussions of a user by id; `next_cursor` asks for the following ones."""

    items: tuple[Discussion, ...]
    next_cursor: str | None = None


class DiscussionEvents(Tolerant):
    """A page of events with the keys of their export; `end` is the newest one's sequence."""

    items: tuple[dict[str, Any], ...]
    end: int


class _Contribution(Frozen):
    """A contribution of a person, in a name of their own: by default, their user id."""

    speaker: Speaker | None = None
    id: DiscussionEventId | None = None
    """The same id again contributes nothing more."""


class Say(_Contribution):
    """`POST …/say`: say something, and wait until it is in the log."""

    text: ContributedText
    reply_to: DiscussionEventId | None = None
    """The id of the event that it answers."""


class Vote(_Contribution):
    """`POST …/vote`: cast a ballot in the present or next vote, and wait until the log has it."""

    ballot: ContributedText
    reason: Annotated[str, StringConstraints(max_length=1000)] | None = None


class Contributed(Tolerant):
    """The place of a contribution in the log."""

    sequence: int


class DiscussionSyncFrame(Tolerant):
    """The first frame of each connection: `durable` frames of these sequences follow at once."""

    kind: Literal["sync"] = "sync"
    from_sequence: int
    through_sequence: int


class DiscussionEventFrame(Tolerant):
    """An event. A connection has each one after its cursor once, and in order."""

    kind: Literal["durable"] = "durable"
    sequence: int
    event: dict[str, Any]
    """The event with the keys of its export."""


class DiscussionStatusFrame(Tolerant):
    """The status of the discussion, at first and whenever it has changed."""

    kind: Literal["status"] = "status"
    status: DiscussionStatus


DiscussionFrame: TypeAlias = (
    DiscussionSyncFrame | DiscussionEventFrame | DiscussionStatusFrame | ErrorFrame
)

DISCUSSION_FRAME: TypeAdapter[DiscussionFrame] = TypeAdapter(
    Annotated[DiscussionFrame, Field(discriminator="kind")]
)
"""Parses a frame of a discussion that is followed."""
