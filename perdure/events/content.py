"""The content of messages and tool results. Names and fields follow the OpenHands SDK."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from perdure.events.base import Frozen


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
    """Anthropic's extended thinking; the signature must be sent back unchanged."""

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
    """A message of a prompt or a response."""

    role: Literal["user", "system", "assistant", "tool"]
    content: tuple[Content, ...] = ()
    tool_calls: tuple[MessageToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: tuple[AnyThinkingBlock, ...] = ()


class ToolAnnotations(Frozen):
    """A tool's effects, in the terms of the Model Context Protocol.

    The defaults are the protocol's: without annotations the worst is assumed.
    """

    title: str | None = None
    readOnlyHint: bool = False  # noqa: N815 - the protocol's spelling
    destructiveHint: bool = True  # noqa: N815
    idempotentHint: bool = False  # noqa: N815
    openWorldHint: bool = True  # noqa: N815

    @property
    def repeatable(self) -> bool:
        return self.readOnlyHint or self.idempotentHint


class ToolDefinition(Frozen):
    """A tool as the model sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]
    annotations: ToolAnnotations = ToolAnnotations()
    waits: bool | None = None
    """Whether an agent repeats the call, with the same result, in order to wait."""
    brief: bool | None = None
    """Whether a call takes a few milliseconds, so that it may run inside the workflow task."""
    suspends: bool | None = None
    """Whether the call is a wait, which the workflow keeps itself: no activity runs meanwhile."""


CUT_NOTE = "\n[... Observation truncated due to length ...]\n"
"""What stands in place of the middle of a long result; the OpenHands SDK has the same."""


def cut_middle(content: tuple[Content, ...], max_chars: int | None) -> tuple[Content, ...]:
    """Cut the middle out of content whose text has more than `max_chars` characters.

    The text is then one part, before the images.
    """
    text = join_text(content)
    if max_chars is None or len(text) <= max_chars:
        return content
    half = max_chars // 2
    images = (part for part in content if isinstance(part, ImageContent))
    return (TextContent(text=text[:half] + CUT_NOTE + text[-half:]), *images)


def join_text(content: Iterable[TextContent | ImageContent]) -> str:
    """Join the text parts by newlines, leaving out images."""
    return "\n".join(part.text for part in content if isinstance(part, TextContent))
