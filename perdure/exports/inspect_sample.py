"""A conversation as a sample of an Inspect log, alone or as one of a batch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.usage import Usage
from perdure.exports.chat import turn_messages
from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_messages import format_message
from perdure.exports.json_text import json_document
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event, utc_timestamp
from perdure.exports.totals import Totals
from perdure.exports.turns import Turn, turns

DEFAULT_GRADER = "grader"
"""Name of a grading model that was not named."""


@dataclass(frozen=True)
class SampleMetadata:
    """A batch's own fields of the sample that a conversation was made for, as JSON has them.

    `epoch` counts from 1. `retries` are the errors of earlier attempts. `spent` is the usage if the
    conversation cannot be read, `grading` the usage beside it.
    """

    id: str
    epoch: int = 1
    target: str | list[str] = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    retries: tuple[str, ...] = ()
    limit: dict[str, Any] | None = None
    spent: Usage | None = None
    grading: Usage | None = None
    seconds: float = 0.0
    turns: int = 0

    def fields(self) -> dict[str, Any]:
        """Return the fields of the sample; some of them are in its summary, shortened."""
        optional = {
            "scores": self.scores or None,
            "error": None if self.error is None else format_error(self.error),
            "error_retries": [format_error(error) for error in self.retries] or None,
            "limit": self.limit,
        }
        counted = {"total_time": self.seconds, "turn_count": self.turns}
        return {name: value for name, value in optional.items() if value is not None} | counted


class SampleWriter:
    """Writes a sample, and collects the fields that follow its messages."""

    def __init__(
        self, conversation: ExportMetadata, metadata: SampleMetadata | None = None
    ) -> None:
        self.conversation = conversation
        self.metadata = metadata
        self.totals = Totals()
        self.count = 0
        self.input = ""
        self.last: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []

    def write(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """Yield the sample as JSON, piece by piece."""
        return json_document(self.head, "messages", self._messages(entries), self._tail)

    def _messages(self, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        for turn in turns(self.totals.count(entries)):
            self._record_event(turn)
            for message in turn_messages(turn):
                formatted = format_message(message, turn)
                self.count += 1
                self.last = formatted if formatted["role"] == "assistant" else self.last
                yield formatted

    def _record_event(self, turn: Turn) -> None:
        event = turn.event
        if isinstance(event, MessageEvent):
            if event.source == "user" and not self.input:
                self.input = join_text(event.llm_message.content)
        elif not isinstance(event, HOUSEKEEPING_EVENTS) and (text := describe_event(event)):
            data = {"kind": event.kind, "seq": turn.entry.seq, "note": text}
            time = utc_timestamp(event) or self.totals.last
            info = {"uuid": event.id, "event": "info", "timestamp": time, "working_start": 0}
            self.events.append(info | {"source": "perdure", "data": data})

    @property
    def head(self) -> dict[str, Any]:
        trial = self.metadata or SampleMetadata(self.conversation.conversation_id)
        return {"id": trial.id, "epoch": trial.epoch, "target": trial.target}

    @property
    def status_fields(self) -> dict[str, Any]:
        """The status that the conversation ended in."""
        conversation = self.conversation
        fields = {
            "status": conversation.status,
            "reason": conversation.reason,
            "title": conversation.title,
        }
        fields |= {"unreadable": self.totals.unreadable_note}
        return {key: value for key, value in fields.items() if value}

    @property
    def error(self) -> str | None:
        if self.metadata is not None:
            return self.metadata.error
        if self.conversation.status not in ("error", "stuck"):
            return None
        return self.conversation.reason or self.conversation.status

    def _tail(self) -> dict[str, Any]:
        fields = {
            "input": self.input,
            "output": self._output(),
            "metadata": self.status_fields if self.metadata is None else self.metadata.metadata,
            "store": {} if self.metadata is None else {"perdure": self.status_fields},
            "events": self.events,
            **self.usage_fields,
            "uuid": self.conversation.conversation_id,
        }
        if self.metadata is not None:
            return fields | self.metadata.fields()
        return fields | ({"error": format_error(self.error)} if self.error else {})

    @property
    def summary(self) -> dict[str, Any]:
        error = {"error": self.error} if self.error else {}
        fields = {
            **self.head,
            "input": self.input,
            "metadata": self.status_fields,
            **self.usage_fields,
            **error,
        }
        return fields | {"completed": True, "message_count": self.count}

    @property
    def usage_by_model(self) -> dict[str, Usage]:
        """Usage by model."""
        usages = {model or self.model: usage for model, usage in self.totals.by_model.items()}
        if self.metadata is None:
            return usages
        if not usages and self.metadata.spent:
            usages[self.metadata.spent.model or self.model] = self.metadata.spent
        grading = self.metadata.grading
        if grading:
            name = grading.model or DEFAULT_GRADER
            usages[name] = usages.get(name, Usage(model=name)) + grading
        return usages

    @property
    def usage_fields(self) -> dict[str, Any]:
        times = format_times(self.totals.first, self.totals.last)
        return {"model_usage": format_usage(self.usage_by_model), **times}

    @property
    def model(self) -> str:
        return self.conversation.model or "unknown"

    def _output(self) -> dict[str, Any]:
        if self.last is None:
            return {"model": self.model, "choices": []}
        reason = "tool_calls" if self.last.get("tool_calls") else "stop"
        return {
            "model": self.model,
            "choices": [{"message": self.last, "stop_reason": reason}],
        }


def format_usage(usages: dict[str, Usage]) -> dict[str, Any]:
    return {model: _usage(usage) for model, usage in usages.items()}


def _usage(usage: Usage) -> dict[str, Any]:
    """Format usage for Inspect, which counts tokens from and to a cache apart from the input."""
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    return {
        "input_tokens": max(0, usage.prompt_tokens - cached - written),
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_tokens_cache_read": cached,
        "input_tokens_cache_write": written,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": usage.cost,
    }


def format_times(first: str, last: str) -> dict[str, str]:
    """Format the times of the first and the last event; none without events."""
    return {"started_at": first, "completed_at": last} if first else {}


def format_error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}
