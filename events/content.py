"""What messages and tool results are made of. Names and fields follow the OpenHands SDK."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from events.base import Frozen


class TextContent(Frozen):
    type: Literal["text"] = "text"
    text: str
    cache_prompt: bool = False


class ImageContent(Frozen):
    type: Literal["image"] = "image"
    image_urls: tuple[str, ...]
    cache_prompt: bool = False


Content: TypeAlias = Annotated[TextContent | ImageContent, Field(discriminator="type")]


class ThinkingBlock(Frozen):
    """Anthropic's extended thinking; the signature must go back as it came."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(Frozen):
    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


AnyThinkingBlock: TypeAlias = Annotated[
    ThinkingBlock | RedactedThinkingBlock, Field(discriminator="type")
]


class MessageToolCall(Frozen):
    """A tool call exactly as the model made it; `arguments` is the raw JSON text."""

    id: str
    name: str
    arguments: str
    origin: Literal["completion", "responses"] = "completion"


class Message(Frozen):
    """One message of a prompt or an answer."""

    role: Literal["user", "system", "assistant", "tool"]
    content: tuple[Content, ...] = ()
    tool_calls: tuple[MessageToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: tuple[AnyThinkingBlock, ...] = ()


class ToolAnnotations(Frozen):
    """What a tool does to the world, in the terms of the Model Context Protocol.

    The defaults are the protocol's: a tool that says nothing is taken for the worst.
    """

    title: str | None = None
    readOnlyHint: bool = False  # noqa: N815 - the protocol's spelling
    destructiveHint: bool = True  # noqa: N815
    idempotentHint: bool = False  # noqa: N815
    openWorldHint: bool = True  # noqa: N815

    @property
    def repeatable(self) -> bool:
        """Whether running the tool a second time does no harm."""
        return self.readOnlyHint or self.idempotentHint


class ToolDefinition(Frozen):
    """A tool as the model is told of it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]
    annotations: ToolAnnotations = ToolAnnotations()
    waits: bool | None = None
    """Whether calling it again and again, with the same result, is how an agent waits."""


def text_of(content: Iterable[TextContent | ImageContent]) -> str:
    """The text parts, joined by newlines; images have none."""
    return "\n".join(part.text for part in content if isinstance(part, TextContent))
