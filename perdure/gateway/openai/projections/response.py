"""A response, and the events of its stream, from the parts of its turn."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from perdure.agent.loop.status import TRUNCATED_REASON
from perdure.events.usage import Usage
from perdure.gateway.openai.projections.items import (
    Item,
    ToolItems,
    approval_item,
    call_item,
    call_output_item,
    end_call,
    end_message,
    message_item,
    reasoning_item,
    text_content,
)
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

Event: TypeAlias = dict[str, Any]

RATE_LIMITED = ("rate_limit", "too_many_requests", "too_many_conversations")
"""Our codes of failures that are OpenAI's `rate_limit_exceeded`; all others are `server_error`."""

ENDINGS = {"completed": "completed", "failed": "failed"}
"""The last event of a response by its status; that of all others is `incomplete`."""


@dataclass(frozen=True)
class Head:
    """The fields of a response that are known before its turn begins."""

    id: str
    created_at: float
    model: str
    conversation_id: str | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class ResponseProjection:
    """The events of a response, part by part, and the response as it is after these.

    Events are numbered from 0. They follow from the head and the parts alone, so that numbers agree
    wherever and whenever the same turn is read.
    """

    head: Head
    tool_items: ToolItems = "mcp_call"
    output: list[Item] = field(default_factory=list)
    status: str = "in_progress"
    _number: int = 0
    _error: dict[str, str] | None = None
    _reason: str | None = None
    _usage: Usage | None = None
    _message: int | None = None
    """The index of the message that grows."""
    _open: dict[str, int] = field(default_factory=dict)
    """The indexes of calls without a result, by their ids."""
    _held: dict[str, Called] = field(default_factory=dict)
    """Calls that a person may have to approve, until it is known."""

    def begin(self) -> list[Event]:
        """Return the events before those of the parts."""
        kinds = ("response.created", "response.in_progress")
        return [self._event(kind, response=self.response()) for kind in kinds]

    def take(self, part: Part) -> list[Event]:
        """Return the events of the next part."""
        match part:
            case Text():
                return self._say(part)
            case Reasoning():
                return self._reason_with(part)
            case Called(approval="possible"):
                self._held[part.call_id] = part
                return []
            case Called():
                return self._call(part)
            case Returned():
                return self._return(part)
            case Condensed():
                return []
            case Asked():
                return self._ask(part)
            case Failed():
                code = "rate_limit_exceeded" if part.code in RATE_LIMITED else "server_error"
                self._error = {"code": code, "message": f"{part.code}: {part.detail}"}
                return []
            case Ended():
                return self._end(part)

    def response(self) -> dict[str, Any]:
        """Return the response as it is now."""
        head = self.head
        details = {"reason": self._reason} if self.status == "incomplete" else None
        return {
            "id": head.id,
            "object": "response",
            "created_at": head.created_at,
            "status": self.status,
            "error": self._error if self.status == "failed" else None,
            "incomplete_details": details if self._reason else None,
            "instructions": head.instructions,
            "metadata": head.metadata,
            "model": head.model,
            "output": list(self.output),
            "parallel_tool_calls": True,
            "previous_response_id": head.previous_response_id,
            "conversation": {"id": head.conversation_id} if head.conversation_id else None,
            "tool_choice": "auto",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "truncation": "disabled",
            "background": False,
            "store": True,
            "usage": format_usage(self._usage) if self._usage is not None else None,
        }

    def _say(self, text: Text) -> list[Event]:
        events = []
        if self._message is None:
            self._message, added = self._add(message_item(text))
            part = text_content("")
            events = [added, self._content("content_part.added", self._message, part=part)]
        index = self._message
        if text.text:
            delta = self._content("output_text.delta", index, delta=text.text, logprobs=[])
            events.append(delta)
        if text.last:
            self._message = None
            done = end_message(self.output[index], text)
            part = done["content"][0]
            events += [
                self._content("output_text.done", index, text=text.whole, logprobs=[]),
                self._content("content_part.done", index, part=part),
                self._done(index, done),
            ]
        return events

    def _reason_with(self, reasoning: Reasoning) -> list[Event]:
        done = reasoning_item(reasoning)
        index, added = self._add({**done, "content": [], "status": "in_progress"})
        return [
            added,
            self._content("reasoning_text.delta", index, delta=reasoning.text),
            self._content("reasoning_text.done", index, text=reasoning.text),
            self._done(index, done),
        ]

    def _call(self, call: Called) -> list[Event]:
        item = call_item(call, self.tool_items, was_approved=call.approval == "answered")
        index, added = self._add({**item, "arguments": ""})
        self._open[call.call_id] = index
        self.output[index] = item
        kind, more = "function_call_arguments", {"name": call.tool_name}
        begun: list[Event] = []
        if item["type"] == "mcp_call":
            kind, more = "mcp_call_arguments", {}
            begun = [self._of_item("mcp_call.in_progress", index)]
        return [
            *(added, *begun),
            self._of_item(f"{kind}.delta", index, delta=call.arguments),
            self._of_item(f"{kind}.done", index, arguments=call.arguments, **more),
        ]

    def _return(self, returned: Returned) -> list[Event]:
        held = self._held.pop(returned.call_id, None)
        events = self._call(held) if held is not None else []
        index = self._open.pop(returned.call_id, None)
        return events if index is None else [*events, *self._end_call(index, returned)]

    def _end_call(self, index: int, returned: Returned | None) -> list[Event]:
        item = self.output[index]
        done = end_call(item, returned)
        if item["type"] == "mcp_call":
            ending = "completed" if done["status"] == "completed" else "failed"
            return [self._of_item(f"mcp_call.{ending}", index), self._done(index, done)]
        events = [self._done(index, done)]
        if returned is not None:
            output, added = self._add(call_output_item(item, returned))
            events += [added, self._done(output, self.output[output])]
        return events

    def _ask(self, asked: Asked) -> list[Event]:
        events = []
        for call in asked.calls:
            if (held := self._held.pop(call.tool_call_id, None)) is not None:
                index, added = self._add(approval_item(held))
                events += [added, self._done(index, self.output[index])]
        return events

    def _end(self, end: Ended) -> list[Event]:
        events = [event for call in self._held.values() for event in self._call(call)]
        for index in self._open.values():
            events += self._end_call(index, None)
        self._held, self._open, self._usage = {}, {}, end.usage
        self.status = self._find_status(end)
        ending = ENDINGS.get(self.status, "incomplete")
        return [*events, self._event(f"response.{ending}", response=self.response())]

    def _find_status(self, end: Ended) -> str:
        if self._error is not None:
            return "failed"
        match end.status:
            case "finished" if end.reason == TRUNCATED_REASON:
                self._reason = "max_output_tokens"
                return "incomplete"
            case "finished" | "waiting_for_confirmation" | "waiting_for_answer":
                return "completed"
            case "error" | "stuck":
                self._error = {"code": "server_error", "message": end.reason or end.status}
                return "failed"
            case "paused":
                return "incomplete"
            case _:
                return "cancelled"

    def _add(self, item: Item) -> tuple[int, Event]:
        index = len(self.output)
        self.output.append(item)
        return index, self._event("response.output_item.added", output_index=index, item=item)

    def _done(self, index: int, item: Item) -> Event:
        self.output[index] = item
        return self._event("response.output_item.done", output_index=index, item=item)

    def _of_item(self, kind: str, index: int, **fields: Any) -> Event:
        item_id = self.output[index]["id"]
        return self._event(f"response.{kind}", item_id=item_id, output_index=index, **fields)

    def _content(self, kind: str, index: int, **fields: Any) -> Event:
        return self._of_item(kind, index, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> Event:
        event = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return event


def format_usage(usage: Usage) -> dict[str, Any]:
    """Return the usage of a response."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
