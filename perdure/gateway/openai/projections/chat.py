"""A chat completion, and the chunks of its stream, from the parts of its turn."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.loop.status import TRUNCATED_REASON
from perdure.events.usage import Usage
from perdure.gateway.turns.parts import (
    Asked,
    Called,
    Condensed,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)

Chunk: TypeAlias = dict[str, Any]

MAX_RESULT_CHARS = 500
"""Characters that are shown of the result of a tool."""


@dataclass(frozen=True)
class ChatHead:
    """The fields of a chat completion that are known before its turn begins.

    `page` is the address at which a person answers what waits.
    """

    id: str
    created: int
    model: str
    page: str


@dataclass
class ChatProjection:
    """The chunks of a chat completion, part by part, and the completion as it is after these.

    A client would run `tool_calls` itself: what the agent does is told as reasoning.
    """

    head: ChatHead
    include_usage: bool = False
    content: str = ""
    reasoning: str = ""
    failure: Failed | None = None
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    _item: str | None = None
    """The item whose words the content ends with."""
    _calls: dict[str, Called] = field(default_factory=dict)

    def begin(self) -> list[Chunk]:
        """Return the chunk before those of the parts."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def take(self, part: Part) -> list[Chunk]:
        """Return the chunks of the next part."""
        match part:
            case Text():
                return self._say(part.item_id, part.text)
            case Reasoning():
                return self._think(part.text)
            case Called():
                self._calls[part.call_id] = part
                return self._think(f"→ {part.tool_name} {part.arguments}")
            case Returned():
                return self._think(f"← {_shorten(part.text)}")
            case Condensed():
                return []
            case Asked():
                return self._say("asked", self._describe(part))
            case Failed():
                self.failure = part
                return []
            case Ended():
                return self._end(part)

    def completion(self) -> dict[str, Any]:
        """Return the completion."""
        message = {"role": "assistant", "content": self.content, "refusal": None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        choice = {
            "index": 0,
            "finish_reason": self.finish_reason,
            "logprobs": None,
            "message": message,
        }
        return {
            "id": self.head.id,
            "object": "chat.completion",
            "created": self.head.created,
            "model": self.head.model,
            "choices": [choice],
            "usage": format_chat_usage(self.usage),
        }

    def _say(self, item_id: str, text: str) -> list[Chunk]:
        if not text:
            return []
        is_new = item_id != self._item and self.content
        self._item, text = item_id, f"\n\n{text}" if is_new else text
        self.content += text
        return [self._chunk({"content": text})]

    def _think(self, text: str) -> list[Chunk]:
        text = f"\n\n{text}" if self.reasoning else text
        self.reasoning += text
        return [self._chunk({"reasoning_content": text})]

    def _describe(self, asked: Asked) -> str:
        """Return what waits for a person, and where it is answered."""
        names = [call.tool_call_id for call in asked.calls]
        calls = [self._calls[name] for name in names if name in self._calls]
        lines = [f"- {call.tool_name} {_shorten(call.arguments)}" for call in calls]
        return "\n".join(["This waits for your approval:", "", *lines, "", self.head.page])

    def _end(self, end: Ended) -> list[Chunk]:
        self.usage = end.usage
        if self.failure is None and end.status in ("error", "stuck"):
            self.failure = Failed(end.status, end.reason or end.status)
        self.finish_reason = "length" if end.reason == TRUNCATED_REASON else "stop"
        if self.failure is not None:
            return []
        last = [self._chunk({}, self.finish_reason)]
        if self.include_usage:
            usage = format_chat_usage(self.usage)
            last.append({**self._chunk({}), "choices": [], "usage": usage})
        return last

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "choices": [choice],
        }
        return {**chunk, "usage": None} if self.include_usage else chunk


def format_chat_usage(usage: Usage) -> dict[str, Any]:
    """Return the usage of a chat completion."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_RESULT_CHARS else f"{text[: MAX_RESULT_CHARS - 1]}…"
