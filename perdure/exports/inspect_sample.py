"""A conversation as a sample of an Inspect log, alone or as one of a batch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import AgentErrorEvent, UserRejectObservation
from perdure.events.usage import Usage
from perdure.exports.chat import ChatMessage, turn_messages
from perdure.exports.content import content_items, plain_text
from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_events import Transcript, format_model_usage
from perdure.exports.json_text import Json, json_document
from perdure.exports.totals import Totals
from perdure.exports.turns import Call, Turn, turns

DEFAULT_GRADER = "grader"
"""Name of a grading model that was not named."""

ERROR_TYPES = {"unknown_tool": "parsing", "bad_arguments": "parsing", "interrupted": "cancelled"}
"""Inspect's types for our errors of calls; all others are unknown."""


@dataclass(frozen=True)
class SampleMetadata:
    """A batch's own fields of the sample that a conversation was made for, as JSON has them.

    `epoch` counts from 1. `retries` are the errors of earlier attempts. `spent` is the usage if the
    conversation cannot be read, `grading` the usage beside it.
    """

    id: str
    epoch: int = 1
    target: str | list[str] = ""
    metadata: Json = field(default_factory=dict)
    scores: Json = field(default_factory=dict)
    error: str | None = None
    retries: tuple[str, ...] = ()
    limit: Json | None = None
    spent: Usage | None = None
    grading: Usage | None = None
    seconds: float = 0.0
    turns: int = 0


class SampleWriter:
    """Writes a sample, and collects the fields that follow its messages."""

    def __init__(
        self, conversation: ExportMetadata, metadata: SampleMetadata | None = None
    ) -> None:
        self.conversation = conversation
        self.metadata = metadata
        self.totals = Totals()
        self.model = conversation.model or "unknown"
        self.count = 0
        self.input = ""
        self.last: Json | None = None
        self.transcript = Transcript(self.model)

    def write(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """Yield the sample as JSON, piece by piece."""
        return json_document(self.head, "messages", self._messages(entries), self._tail)

    def _messages(self, entries: Iterable[Entry]) -> Iterator[Json]:
        for turn in turns(self.totals.count(entries)):
            event = turn.event
            if isinstance(event, MessageEvent) and event.source == "user" and not self.input:
                self.input = join_text(event.llm_message.content)
            messages = [_format_message(message, turn) for message in turn_messages(turn)]
            self.transcript.add(turn, messages)
            for message in messages:
                self.count += 1
                self.last = message if message["role"] == "assistant" else self.last
                yield message

    @property
    def head(self) -> Json:
        sample = self.metadata or SampleMetadata(self.conversation.conversation_id)
        return {"id": sample.id, "epoch": sample.epoch, "target": sample.target}

    @property
    def error(self) -> str | None:
        if self.metadata is not None:
            return self.metadata.error
        if self.conversation.status not in ("error", "stuck"):
            return None
        return self.conversation.reason or self.conversation.status

    def _status_fields(self) -> Json:
        names = ("status", "reason", "title")
        fields = {name: getattr(self.conversation, name) for name in names}
        fields["unreadable"] = self.totals.unreadable_note
        return {key: value for key, value in fields.items() if value}

    def _tail(self) -> Json:
        status, sample = self._status_fields(), self.metadata
        return {
            "input": self.input,
            "output": self._output(),
            "metadata": sample.metadata if sample else status,
            "store": {"perdure": status} if sample else {},
            **self._transcript_fields(),
            **self._usage_fields(),
            "uuid": self.conversation.conversation_id,
            **({"scores": sample.scores} if sample and sample.scores else {}),
            **format_error(self.error),
            **(_attempt_fields(sample) if sample else {}),
        }

    def _transcript_fields(self) -> Json:
        sample = self.metadata
        init = {**self.head, "input": self.input, "metadata": sample.metadata if sample else {}}
        del init["epoch"]
        scores, limit = (sample.scores, sample.limit) if sample else ({}, None)
        return self.transcript.finish(init, scores, format_error(self.error), limit)

    def summary(self) -> Json:
        return {
            **self.head,
            "input": self.input,
            "metadata": self._status_fields(),
            **self._usage_fields(),
            **({"error": self.error} if self.error else {}),
            "completed": True,
            "message_count": self.count,
        }

    def usage_by_model(self) -> dict[str, Usage]:
        usages: defaultdict[str, Usage] = defaultdict(Usage)
        for (_, model), usage in self.totals.usage.items():
            usages[model or self.model] += usage
        if self.metadata and self.metadata.spent and not usages:
            usages[self.metadata.spent.model or self.model] = self.metadata.spent
        if self.metadata and (grading := self.metadata.grading):
            usages[grading.model or DEFAULT_GRADER] += grading
        return usages

    def _usage_fields(self) -> Json:
        times = format_times(self.totals.first, self.totals.last)
        return {"model_usage": format_usage(self.usage_by_model()), **times}

    def _output(self) -> Json:
        reason = "tool_calls" if self.last and self.last.get("tool_calls") else "stop"
        choices = [{"message": self.last, "stop_reason": reason}] if self.last else []
        return {"model": self.model, "choices": choices}


def _attempt_fields(sample: SampleMetadata) -> Json:
    retries = [format_error(error)["error"] for error in sample.retries]
    return {
        **({"error_retries": retries} if retries else {}),
        **({"limit": sample.limit} if sample.limit else {}),
        "total_time": sample.seconds,
        "turn_count": sample.turns,
    }


def _format_message(message: ChatMessage, turn: Turn) -> Json:
    content = content_items(message["content"], lambda url: {"type": "image", "image": url})
    match message["role"]:
        case "assistant":
            return _assistant(message, turn, content)
        case "tool":
            return _result(message["call"], content)
        case role:
            return {"id": turn.event.id, "role": role, "content": content}


def _assistant(message: ChatMessage, turn: Turn, content: list[Json]) -> Json:
    if message["reasoning"]:
        content = [{"type": "reasoning", "reasoning": message["reasoning"]}, *content]
    fields = {"id": turn.event.id, "role": "assistant", "content": content, "source": "generate"}
    if turn.entry.usage and turn.entry.usage.model:
        fields["model"] = turn.entry.usage.model
    if turn.calls:
        fields["tool_calls"] = [_call(call) for call in turn.calls]
    return fields


def _call(call: Call) -> Json:
    function = {"function": call.action.tool_call.name, "arguments": call.arguments}
    error = {} if call.action.action else {"parse_error": plain_text(call.result)}
    return {"id": call.id, **function, "type": "function", **error}


def _result(call: Call, content: list[Json]) -> Json:
    fields = {"role": "tool", "tool_call_id": call.id, "function": call.action.tool_name}
    id_field = {"id": call.answer.event.id} if call.answer else {}
    error = {"error": {"type": _error_type(call), "message": plain_text(call.result)}}
    return {**id_field, **fields, "content": content, **(error if call.failed else {})}


def _error_type(call: Call) -> str:
    match call.answer and call.answer.event:
        case AgentErrorEvent(classification=classification):
            return ERROR_TYPES.get(classification, "unknown")
        case UserRejectObservation():
            return "approval"
        case _:
            return "unknown"


def format_usage(usages: dict[str, Usage]) -> Json:
    return {model: format_model_usage(usage) for model, usage in usages.items()}


def format_times(first: str, last: str) -> dict[str, str]:
    """Format the times of the first and the last event; none without events."""
    return {"started_at": first, "completed_at": last} if first else {}


def format_error(message: str | None) -> dict[str, dict[str, str]]:
    """Return the field of an error; no field if there is none."""
    error = {"message": message or "", "traceback": "", "traceback_ansi": ""}
    return {"error": error} if message else {}
