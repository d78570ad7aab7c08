"""Puts the pieces of an answer together, wherever a provider chose to put them."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from events.content import (
    AnyThinkingBlock,
    Message,
    MessageToolCall,
    RedactedThinkingBlock,
    TextContent,
    ThinkingBlock,
)
from events.usage import Usage

Json: TypeAlias = Mapping[str, Any]

NOTHING: Json = {}


@dataclass
class Call:
    """A tool call as far as it has come."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, piece: Json) -> None:
        """Take in a delta. Ids come whole; names too, though some servers repeat them."""
        function = piece.get("function") or NOTHING
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        self.id = self.id or piece.get("id") or ""
        if name != self.name:
            self.name += name
        self.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments)


@dataclass
class Assembly:
    """An answer that grows by chat-completion chunks, or is one whole completion."""

    id: str = ""
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Json = field(default_factory=dict)
    answered: bool = False
    """Whether there was any choice in what came."""
    calls: list[Call] = field(default_factory=list)
    _open: dict[Any, Call] = field(default_factory=dict)
    _blocks: list[AnyThinkingBlock] = field(default_factory=list)
    _thinking: str = ""

    def add(self, chunk: Json) -> None:
        """Take in one chunk, or the whole completion."""
        self.id = self.id or chunk.get("id") or ""
        self.usage = chunk.get("usage") or self.usage
        for choice in (chunk.get("choices") or ())[:1]:
            self.answered = True
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            self._add_delta(choice.get("delta") or choice.get("message") or NOTHING)

    @property
    def empty(self) -> bool:
        """Whether nothing was said and nothing called."""
        return not (self.text or self.calls or self.reasoning)

    def message(self, taken: Collection[str] = ()) -> Message:
        """The answer as a message. A tool call whose id is missing or `taken` gets a fresh one."""
        return Message(
            role="assistant",
            content=(TextContent(text=self.text),) if self.text else (),
            tool_calls=tuple(_with_ids(self.calls, taken)) or None,
            reasoning_content=self.reasoning or None,
            thinking_blocks=tuple(self._blocks),
        )

    def _add_delta(self, delta: Json) -> None:
        extra = delta.get("provider_specific_fields") or NOTHING
        self._add_content(delta.get("content"))
        self.reasoning += next(iter(_reasoning(delta, extra)), "")
        for block in delta.get("thinking_blocks") or extra.get("thinking_blocks") or ():
            self._add_block(block)
        for piece in delta.get("tool_calls") or ():
            self._call(piece).add(piece)

    def _add_content(self, content: Any) -> None:
        """Some providers send a list of typed parts in place of the text."""
        if isinstance(content, str):
            self.text += content
            return
        for part in content or ():
            if part.get("type") == "thinking":
                self.reasoning += _text_of(part.get("thinking"))
            else:
                self.text += _text_of(part.get("text"))

    def _add_block(self, block: Json) -> None:
        """A thinking block ends with its signature; without one no provider takes it back."""
        if block.get("type") == "redacted_thinking":
            self._blocks.append(RedactedThinkingBlock(data=block.get("data") or ""))
            return
        self._thinking += block.get("thinking") or ""
        if block.get("signature"):
            signed = ThinkingBlock(thinking=self._thinking, signature=block["signature"])
            self._blocks.append(signed)
            self._thinking = ""

    def _call(self, piece: Json) -> Call:
        """The call a delta belongs to: told by index; or a new one, where all have index 0."""
        index = piece.get("index")
        known = self._open.get(index)
        named = (piece.get("function") or NOTHING).get("name")
        another = known and named and piece.get("id") not in (None, "", known.id)
        if known is None or another:
            known = Call()
            self.calls.append(known)
        self._open[index] = self._open[None] = known
        return known


def usage_of(tokens: Json, cost: float, latency: float) -> Usage:
    """Token counts as the providers spell them, with US dollars and seconds."""
    prompt = tokens.get("prompt_tokens_details") or NOTHING
    completion = tokens.get("completion_tokens_details") or NOTHING
    cached = (
        prompt.get("cached_tokens")
        or tokens.get("cache_read_input_tokens")
        or tokens.get("prompt_cache_hit_tokens")
    )
    written = (
        prompt.get("cache_write_tokens")
        or prompt.get("cache_creation_tokens")
        or tokens.get("cache_creation_input_tokens")
    )
    return Usage(
        prompt_tokens=tokens.get("prompt_tokens") or 0,
        completion_tokens=tokens.get("completion_tokens") or 0,
        cached_tokens=cached or 0,
        cache_write_tokens=written or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
        cost=cost,
        latency=latency,
    )


def _reasoning(delta: Json, extra: Json) -> Iterable[str]:
    """The reasoning in each of its usual places; they repeat each other, so one will do."""
    for place in (delta, extra):
        for name in ("reasoning_content", "reasoning"):
            if isinstance(place.get(name), str) and place[name]:
                yield place[name]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(_text_of(part.get("text")) for part in content or ())


def _with_ids(calls: Iterable[Call], taken: Collection[str]) -> Iterable[MessageToolCall]:
    seen = set(taken)
    for call in calls:
        call_id = call.id if call.id and call.id not in seen else f"call_{uuid4().hex}"
        seen.add(call_id)
        yield MessageToolCall(id=call_id, name=call.name, arguments=call.arguments or "{}")
