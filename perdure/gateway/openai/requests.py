"""The bodies of requests, and what they say to an agent.

Parameters of models, such as `temperature`, are read over: an agent has its own. What would be
answered otherwise than asked is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from perdure.api.conversations import MAX_TEXT_CHARS, Image
from perdure.gateway.openai.errors import BadRequest

Word: TypeAlias = Annotated[str, Field(max_length=512)]
Long: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Metadata: TypeAlias = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Word], Field(max_length=16)
]
Role: TypeAlias = Literal["user", "assistant", "system", "developer"]

TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
IMAGE_PARTS = ("image_url", "input_image")


class Body(BaseModel):
    """A body of which other fields are read over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ImageUrl(Body):
    url: Image


class ContentPart(Body):
    """A part of a message, in either API."""

    type: Word
    text: Long | None = None
    refusal: Long | None = None
    image_url: ImageUrl | Image | None = None


class InputItem(Body):
    """A message, an answer to a request for approval, or an item of an earlier response."""

    type: Word = "message"
    role: Word | None = None
    content: Long | Annotated[tuple[ContentPart, ...], Field(max_length=1000)] | None = None
    approval_request_id: Word | None = None
    approve: StrictBool | None = None
    reason: Long | None = None


Items: TypeAlias = Annotated[tuple[InputItem, ...], Field(max_length=10_000)]


class ConversationParam(Body):
    id: Word


class CreateResponse(Body):
    """`POST /responses`."""

    model: Word
    input: Long | Items = ""
    instructions: Long | None = None
    conversation: ConversationParam | Word | None = None
    previous_response_id: Word | None = None
    store: StrictBool | None = None
    background: StrictBool | None = None
    stream: StrictBool | None = None
    metadata: Metadata | None = None
    tools: tuple[Any, ...] | None = None
    prompt: Any = None
    text: dict[str, Any] | None = None


class StreamOptions(Body):
    include_usage: StrictBool | None = None


class CreateChatCompletion(Body):
    """`POST /chat/completions`."""

    model: Word
    messages: Annotated[Items, Field(min_length=1)]
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    metadata: Metadata | None = None
    n: int | None = None
    tools: tuple[Any, ...] | None = None
    functions: tuple[Any, ...] | None = None
    response_format: dict[str, Any] | None = None
    modalities: tuple[Word, ...] | None = None


Turn: TypeAlias = CreateResponse | CreateChatCompletion
"""A request that begins a turn."""


class CreateConversation(Body):
    """`POST /conversations`."""

    items: Items | None = None
    metadata: Metadata | None = None


class UpdateConversation(Body):
    """`POST /conversations/{id}`."""

    metadata: Metadata


@dataclass(frozen=True)
class SpokenMessage:
    """A message of a request."""

    role: Role
    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Approval:
    """A person's answer to a call that waits."""

    request_id: str
    approve: bool
    reason: str = ""


@dataclass(frozen=True)
class ParsedInput:
    """The content of a request: messages in their order, answers to approvals, and instructions."""

    messages: tuple[SpokenMessage, ...]
    approvals: tuple[Approval, ...] = ()
    instructions: str | None = None

    @property
    def user_texts(self) -> list[str]:
        return [message.text for message in self.messages if message.role == "user"]


def parse_input(value: str | Sequence[InputItem], param: str = "input") -> ParsedInput:
    """Parse what is said. Raises BadRequest."""
    if isinstance(value, str):
        return ParsedInput((SpokenMessage("user", value),) if value.strip() else ())
    messages: list[SpokenMessage] = []
    instructions: list[SpokenMessage] = []
    approvals: list[Approval] = []
    for number, item in enumerate(value):
        where = f"{param}[{number}]"
        if item.type == "mcp_approval_response":
            approvals.append(_parse_approval(item, where))
        elif item.type == "message" and item.role not in ("tool", "function"):
            message = _parse_message(item, where)
            is_spoken = message.role in ("user", "assistant")
            (messages if is_spoken else instructions).append(message)
        # The other items are what the agent did: the log has it.
    said = "\n\n".join(message.text for message in instructions) or None
    return ParsedInput(tuple(messages), tuple(approvals), said)


def parse_turn(body: Turn) -> ParsedInput:
    """Parse what a request says, with its instructions. Raises BadRequest."""
    if isinstance(body, CreateChatCompletion):
        return parse_input(body.messages, "messages")
    said = parse_input(body.input)
    texts = [text for text in (body.instructions, said.instructions) if text]
    return replace(said, instructions="\n\n".join(texts) or None)


def compose(messages: Sequence[SpokenMessage], param: str = "input") -> tuple[str, tuple[str, ...]]:
    """Return the text and the images of one message that says all of these.

    Of several messages the text is a transcript, which the newest one follows. Raises BadRequest
    unless that is a user's.
    """
    if not messages or messages[-1].role != "user":
        raise BadRequest("The last message has to be a user's.", param)
    *before, newest = messages
    images = tuple(image for message in messages for image in message.images)
    if not newest.text.strip() and not images:
        raise BadRequest("The last message is empty: say something.", param)
    if not before:
        return newest.text, images
    names = {"user": "User", "assistant": "Assistant"}
    lines = [f"{names[message.role]}: {message.text}" for message in before]
    transcript = "\n\n".join(lines)
    return (
        f"This conversation has begun elsewhere:\n\n{transcript}\n\n"
        f"The newest message is:\n\n{newest.text}",
        images,
    )


def refuse_unsupported(body: Turn) -> None:
    """Raise BadRequest for what an agent would not do."""
    if body.tools or getattr(body, "functions", None):
        raise _unsupported("tools", "An agent has its own tools, and runs them: leave `tools` out.")
    if isinstance(body, CreateResponse):
        shape = (body.text or {}).get("format")
        if body.prompt is not None:
            raise _unsupported("prompt", "There are no stored prompts: name an agent as `model`.")
        if body.background and body.store is False:
            detail = "What runs in the background is stored: leave `store` out."
            raise BadRequest(detail, "background")
    else:
        shape = body.response_format
        if body.n is not None and body.n != 1:
            raise _unsupported("n", "An agent gives one answer: leave `n` out.")
        if body.modalities and set(body.modalities) != {"text"}:
            raise _unsupported("modalities", "An agent answers with text.")
    if shape is not None and (not isinstance(shape, dict) or shape.get("type") != "text"):
        param = "text.format" if isinstance(body, CreateResponse) else "response_format"
        raise _unsupported(param, "An agent answers with text: give it a `response_schema`.")


def _unsupported(param: str, detail: str) -> BadRequest:
    return BadRequest(detail, param, "unsupported_parameter")


def _parse_approval(item: InputItem, where: str) -> Approval:
    if item.approval_request_id is None or item.approve is None:
        raise BadRequest("An answer has `approval_request_id` and `approve`.", where)
    return Approval(item.approval_request_id, item.approve, item.reason or "")


def _parse_message(item: InputItem, where: str) -> SpokenMessage:
    if item.role not in ("user", "assistant", "system", "developer"):
        detail = "The role of a message is `user`, `assistant`, `system` or `developer`."
        raise BadRequest(detail, f"{where}.role")
    role: Role = item.role  # type: ignore[assignment]
    if isinstance(item.content, str) or item.content is None:
        return SpokenMessage(role, item.content or "")
    texts, images = [], []
    for number, part in enumerate(item.content):
        if part.type in TEXT_PARTS:
            texts.append(part.text or part.refusal or "")
        elif part.type in IMAGE_PARTS and part.image_url is not None:
            url = part.image_url
            images.append(url.url if isinstance(url, ImageUrl) else url)
        else:
            detail = "A part is a text, or an image by its `image_url`."
            raise BadRequest(detail, f"{where}.content[{number}]", "unsupported_value")
    return SpokenMessage(role, "\n".join(texts), tuple(images))
