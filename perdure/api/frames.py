"""The frames that a client receives while it follows a conversation, or all of its user's.

A server-sent event has the frame as its data, the kind of the frame as its name, and for `durable`
the slot as its id. A socket sends one frame a message, and takes requests, one a message.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StrictBool, TypeAdapter

from perdure.agent.loop.start import ConversationStatus
from perdure.api.conversations import Id, Image, Respond, Text
from perdure.events.base import Frozen, Tolerant


class SyncFrame(Tolerant):
    """The first frame of each connection: `durable` frames of these slots follow at once.

    There is none to send if `through_seq` is smaller than `from_seq`.
    """

    kind: Literal["sync"] = "sync"
    from_seq: int
    through_seq: int


class DurableFrame(Tolerant):
    """An entry of the log. A connection has each slot after its cursor once, and in order."""

    kind: Literal["durable"] = "durable"
    seq: int
    entry: dict[str, Any]
    """The entry as stored: the fields of the event, `origin`, and `usage` and `files` if any."""


class DeltaFrame(Tolerant):
    """A part of the text of a step at work; it is never sent again.

    `item_id` and `run` name the step: its events have this `origin.run`, and an `origin.activity`
    that is the id, or begins with it and a space. The first of these takes the place of the text,
    which is the event's own if the step is `llm.chat`. No two steps at work have the same id.

    `offset` is the number of characters before this part, as Unicode counts them: what a client
    has behind them is replaced. `order` counts the parts of an attempt from 0; the text of a higher
    attempt replaces that of the lower ones. A client that attaches in the middle receives the text
    so far as its first part, with the order of the newest part in it; characters before that part,
    if its offset is not 0, come with the event alone.
    """

    kind: Literal["delta"] = "delta"
    item_id: str
    run: str
    step: str
    """The kind of the step: `llm.chat`, `tool.call` …"""
    attempt: int
    order: int
    offset: int
    text: str


class ItemAbortedFrame(Tolerant):
    """A step whose text was sent has ended without an event; its text is to be removed."""

    kind: Literal["item_aborted"] = "item_aborted"
    item_id: str
    run: str


class StatusFrame(Tolerant):
    """The status of the conversation, whenever it has changed, and once after the first `sync`."""

    kind: Literal["status"] = "status"
    status: ConversationStatus


class NoticeFrame(Tolerant):
    """A notice to the clients of a conversation that is no event of it.

    `id` is a code such as `AGENT_ERROR$TOO_MANY_CONVERSATIONS`.
    """

    kind: Literal["notice"] = "notice"
    status_update: Literal[True] = True
    type: Literal["info", "error"]
    id: str
    message: str


class ErrorFrame(Tolerant):
    """The reason why the connection ends, or why a request on the socket was refused."""

    kind: Literal["error"] = "error"
    code: str
    detail: str
    id: str | None = None
    """The id of the request that was refused; None if the connection ends."""


class AckFrame(Tolerant):
    """The answer to a request on the socket that was accepted."""

    kind: Literal["ack"] = "ack"
    id: str
    seq: int | None = None
    """The slot of the message that was sent."""
    event_id: str | None = None
    calls: tuple[str, ...] = ()
    """The tool calls that a response has settled."""


Frame: TypeAlias = (
    SyncFrame
    | DurableFrame
    | DeltaFrame
    | ItemAbortedFrame
    | StatusFrame
    | NoticeFrame
    | ErrorFrame
    | AckFrame
)

FRAME: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])
"""Parses a frame."""


class FeedFrame(Tolerant):
    """A change of one of the user's conversations: the frame that its own followers receive.

    A feed has `status` and `notice` frames only. `removed` is set when it left the user's list.
    """

    conversation_id: str
    frame: Annotated[StatusFrame | NoticeFrame, Field(discriminator="kind")] | None = None
    removed: bool = False


class SendRequest(Frozen):
    """Send a message; the answer comes once it is in the log."""

    kind: Literal["send"]
    id: Id
    """The id of the request, which its answer has too."""
    text: Text
    message_id: Id | None = None
    images: Annotated[tuple[Image, ...], Field(max_length=20)] = ()
    reopen: StrictBool = False
    """Whether to open the conversation again if it is closed."""
    run: StrictBool = True
    """Whether an agent at rest runs; without, the message is only recorded until it is resumed."""


class SteerRequest(Frozen):
    """Steer the conversation, as the route of the same name does."""

    kind: Literal["pause", "resume", "interrupt", "condense", "close"]
    id: Id


class RespondRequest(Respond):
    """Accept or reject the actions that wait for a person."""

    kind: Literal["respond"]
    id: Id


SocketRequest: TypeAlias = SendRequest | SteerRequest | RespondRequest

SOCKET_REQUEST: TypeAdapter[SocketRequest] = TypeAdapter(
    Annotated[SocketRequest, Field(discriminator="kind")]
)
"""Parses a request on a socket."""
