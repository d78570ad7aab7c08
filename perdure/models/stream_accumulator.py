"""Streamed chunks: parsed, and accumulated into one answer for the fields of every provider."""

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Collection,
    Iterable,
    Mapping,
)
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from perdure.events.content import (
    AnyThinkingBlock,
    Message,
    MessageToolCall,
    RedactedThinkingBlock,
    TextContent,
    ThinkingBlock,
)
from perdure.events.usage import Usage

Json: TypeAlias = Mapping[str, Any]

EMPTY: Json = {}


@dataclass
class PartialToolCall:
    """A tool call as far as it was received."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, delta: Json) -> None:
        """Add a delta. Ids and names come whole, though some servers repeat the name."""
        function = delta.get("function") or EMPTY
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        self.id = self.id or delta.get("id") or ""
        if name != self.name:
            self.name += name
        self.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments)


@dataclass
class StreamAccumulator:
    """An answer accumulated from chat-completion chunks, or from one whole completion."""

    id: str = ""
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Json = field(default_factory=dict)
    has_choice: bool = False
    """A choice was received."""
    calls: list[PartialToolCall] = field(default_factory=list)
    _open: dict[Any, PartialToolCall] = field(default_factory=dict)
    _blocks: list[AnyThinkingBlock] = field(default_factory=list)
    _thinking: str = ""

    def add(self, chunk: Json) -> None:
        """Add one chunk, or a whole completion."""
        self.id = self.id or chunk.get("id") or ""
        self.usage = chunk.get("usage") or self.usage
        for choice in (chunk.get("choices") or ())[:1]:
            self.has_choice = True
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            self._add_delta(choice.get("delta") or choice.get("message") or EMPTY)

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.calls or self.reasoning)

    def message(self, used_ids: Collection[str] = ()) -> Message:
        """Build the answer's message; tool calls with missing or used ids get new ids."""
        return Message(
            role="assistant",
            content=(TextContent(text=self.text),) if self.text else (),
            tool_calls=tuple(_assign_ids(self.calls, used_ids)) or None,
            reasoning_content=self.reasoning if self.reasoning.strip() else None,
            thinking_blocks=tuple(self._blocks),
        )

    def _add_delta(self, delta: Json) -> None:
        extra = delta.get("provider_specific_fields") or EMPTY
        self._add_content(delta.get("content"))
        self.reasoning += _find_reasoning(delta) or _find_reasoning(extra)
        for block in delta.get("thinking_blocks") or extra.get("thinking_blocks") or ():
            self._add_block(block)
        for call_delta in delta.get("tool_calls") or ():
            self._call_of(call_delta).add(call_delta)

    def _add_content(self, content: Any) -> None:
        """Add content: a text or, from some providers, a list of typed parts."""
        if isinstance(content, str):
            self.text += content
            return
        for part in content or ():
            if part.get("type") == "thinking":
                self.reasoning += _join_text(part.get("thinking"))
            else:
                self.text += _join_text(part.get("text"))

    def _add_block(self, block: Json) -> None:
        """Add a piece of a thinking block, which is complete once its signature has come."""
        if block.get("type") == "redacted_thinking":
            self._blocks.append(RedactedThinkingBlock(data=block.get("data") or ""))
            return
        self._thinking += block.get("thinking") or ""
        if signature := block.get("signature"):
            self._blocks.append(ThinkingBlock(thinking=self._thinking, signature=signature))
            self._thinking = ""

    def _call_of(self, delta: Json) -> PartialToolCall:
        """Find the call of a delta by its index, or start a new one.

        Some servers give every call the index 0: a new name and id also start a new call.
        """
        index = delta.get("index")
        call = self._open.get(index)
        name = (delta.get("function") or EMPTY).get("name")
        another = call and name and delta.get("id") not in (None, "", call.id)
        if call is None or another:
            call = PartialToolCall()
            self.calls.append(call)
        self._open[index] = self._open[None] = call
        return call


def parse_usage(tokens: Json) -> Usage:
    """Parse token counts in every provider's spelling."""
    prompt = tokens.get("prompt_tokens_details") or EMPTY
    completion = tokens.get("completion_tokens_details") or EMPTY
    cached = prompt.get("cached_tokens") or tokens.get("cache_read_input_tokens")
    written = prompt.get("cache_write_tokens") or prompt.get("cache_creation_tokens")
    return Usage(
        prompt_tokens=tokens.get("prompt_tokens") or 0,
        completion_tokens=tokens.get("completion_tokens") or 0,
        cached_tokens=cached or tokens.get("prompt_cache_hit_tokens") or 0,
        cache_write_tokens=written or tokens.get("cache_creation_input_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
    )


def _find_reasoning(fields: Json) -> str:
    """Find the reasoning, which is in one of two fields, or in both, which repeat each other."""
    for name in ("reasoning_content", "reasoning"):
        if (text := fields.get(name)) and isinstance(text, str):
            return text
    return ""


def _join_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(_join_text(part.get("text")) for part in content or ())


def _assign_ids(
    calls: Iterable[PartialToolCall], used_ids: Collection[str]
) -> Iterable[MessageToolCall]:
    seen = set(used_ids)
    for call in calls:
        call_id = call.id if call.id and call.id not in seen else f"call_{uuid4().hex}"
        seen.add(call_id)
        yield MessageToolCall(id=call_id, name=call.name, arguments=call.arguments or "{}")


async def parse_events(body: AsyncIterable[bytes]) -> AsyncGenerator[Any]:
    """Parse the JSON values of a stream, up to its `[DONE]` or its end.

    Raises json.JSONDecodeError when an event is not JSON.
    """
    data: list[bytes] = []
    async for line in _split_lines(body):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            if data == [b"[DONE]"]:
                return
            yield json.loads(b"\n".join(data))
            data = []


async def _split_lines(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Split a body into lines, at newlines alone; the last one is empty.

    httpx and str.splitlines also split at U+2028 and the like, which JSON may hold unescaped.
    """
    rest = b""
    async for piece in body:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.rstrip(b"\r")
    yield rest
    yield b""
