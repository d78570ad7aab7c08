"""An Inspect log (`.eval`): the conversation as the one sample of an evaluation without scores.

A zip of JSON, as inspect_ai 0.3 reads it. What is neither said nor done is an `info` event of the
sample, so that a condensation and its summary show in the transcript, and all messages are there.
"""

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from events.content import Content, ImageContent, text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.tools import AgentErrorEvent, UserRejectObservation
from events.usage import Usage
from exports.arguments import arguments_of
from exports.chat import ChatMessage, chat
from exports.format import About, document
from exports.json_text import compact
from exports.json_text import document as json_document
from exports.notes import QUIET, moment, note
from exports.totals import Totals
from exports.turns import Call, Turn, text_in, turns

VERSION = 2
EPOCH = 1

LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a zip: nobody needs it, and the same log makes the same bytes."""

ENDED = {"running": "started", "error": "error", "stuck": "error"}
"""Our statuses in their terms; all others are a success."""

ERRORS = {
    "unknown_tool": "parsing",
    "bad_arguments": "parsing",
    "interrupted": "cancelled",
}
"""Our errors of calls in their terms; all others are unknown."""


def write(about: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    sink, sample = _Sink(), _Sample(about)
    with zipfile.ZipFile(sink, "w") as archive:  # type: ignore[call-overload]
        name = f"samples/{about.conversation_id}_epoch_{EPOCH}.json"
        with archive.open(_info(name), "w", force_zip64=True) as member:
            for piece in json_document(
                sample.head, "messages", sample.messages(entries), sample.tail
            ):
                member.write(piece)
                yield sink.taken()
        header = _header(sample)
        start = {key: header[key] for key in ("version", "eval", "plan")}
        archive.writestr(_info("_journal/start.json"), compact(start))
        archive.writestr(_info("summaries.json"), compact([sample.summary]))
        archive.writestr(_info("header.json"), compact(header))
    yield sink.taken()


class _Sink:
    """What was written and nobody took yet; a zip needs no more of a file."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Nothing is held back."""

    def taken(self) -> bytes:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


class _Sample:
    """Keeps in mind what is told of a sample once its messages are written."""

    def __init__(self, about: About) -> None:
        self.about = about
        self.totals = Totals()
        self.count = 0
        self.input = ""
        self.last: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []

    def messages(self, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        for turn in turns(self.totals.watch(entries)):
            self._look(turn)
            for message in chat(turn):
                formed = _formed(message, turn)
                self.count += 1
                self.last = formed if formed["role"] == "assistant" else self.last
                yield formed

    def _look(self, turn: Turn) -> None:
        event = turn.event
        if isinstance(event, MessageEvent):
            if event.source == "user" and not self.input:
                self.input = text_of(event.llm_message.content)
        elif not isinstance(event, QUIET) and (said := note(event)):
            told = {"kind": event.kind, "seq": turn.entry.seq, "note": said}
            at = moment(event) or self.totals.last
            info = {"uuid": event.id, "event": "info", "timestamp": at, "working_start": 0}
            self.events.append(info | {"source": "perdure", "data": told})

    @property
    def head(self) -> dict[str, Any]:
        return {"id": self.about.conversation_id, "epoch": EPOCH, "target": ""}

    @property
    def told(self) -> dict[str, Any]:
        about = self.about
        told = {"status": about.status, "reason": about.reason, "title": about.title}
        told |= {"unreadable": self.totals.lost}
        return {key: value for key, value in told.items() if value}

    @property
    def error(self) -> str | None:
        if self.about.status not in ("error", "stuck"):
            return None
        return self.about.reason or self.about.status

    def tail(self) -> dict[str, Any]:
        error = {"error": _error(self.error)} if self.error else {}
        return {
            "input": self.input,
            "output": self._output(),
            "metadata": self.told,
            "store": {},
            "events": self.events,
            **self.spent,
            "uuid": self.about.conversation_id,
            **error,
        }

    @property
    def summary(self) -> dict[str, Any]:
        error = {"error": self.error} if self.error else {}
        told = {**self.head, "input": self.input, "metadata": self.told, **self.spent, **error}
        return told | {"completed": True, "message_count": self.count}

    @property
    def spent(self) -> dict[str, Any]:
        models = self.totals.by_model.items()
        spent = {model or self.model: _usage(usage) for model, usage in models}
        return {"model_usage": spent, **self.moments}

    @property
    def moments(self) -> dict[str, Any]:
        found = {"started_at": self.totals.first, "completed_at": self.totals.last}
        return {key: at for key, at in found.items() if at}

    @property
    def model(self) -> str:
        return self.about.model or "unknown"

    def _output(self) -> dict[str, Any]:
        if self.last is None:
            return {"model": self.model, "choices": []}
        reason = "tool_calls" if self.last.get("tool_calls") else "stop"
        return {
            "model": self.model,
            "choices": [{"message": self.last, "stop_reason": reason}],
        }


def _header(sample: _Sample) -> dict[str, Any]:
    about = sample.about
    ended = {"error": _error(sample.error)} if sample.error else {}
    spec = {
        "eval_id": about.conversation_id,
        "run_id": about.conversation_id,
        "created": sample.totals.first or "1970-01-01T00:00:00Z",
        "task": about.title or "conversation",
        "task_id": about.conversation_id,
        "dataset": {"samples": 1, "sample_ids": [about.conversation_id]},
        "model": sample.model,
        "config": {"epochs": EPOCH},
        "packages": {"perdure": about.version},
    }
    return {
        "version": VERSION,
        "status": ENDED.get(about.status, "success"),
        "eval": spec,
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": 1, "completed_samples": int(not sample.error), "scores": []},
        "stats": sample.spent,
        **ended,
    }


def _formed(message: ChatMessage, turn: Turn) -> dict[str, Any]:
    content = [one for part in message["content"] for one in _part(part)]
    match message["role"]:
        case "assistant":
            return _assistant(message, turn, content)
        case "tool":
            return _result(message["call"], content)
        case role:
            return {"id": turn.event.id, "role": role, "content": content}


def _assistant(message: ChatMessage, turn: Turn, content: list[dict[str, Any]]) -> dict[str, Any]:
    if message["reasoning"]:
        content = [{"type": "reasoning", "reasoning": message["reasoning"]}, *content]
    formed = {"id": turn.event.id, "role": "assistant", "content": content, "source": "generate"}
    if turn.entry.usage and turn.entry.usage.model:
        formed["model"] = turn.entry.usage.model
    if turn.calls:
        formed["tool_calls"] = [_call(call) for call in turn.calls]
    return formed


def _call(call: Call) -> dict[str, Any]:
    action = call.action
    told = {"id": call.id, "function": action.tool_call.name, "arguments": arguments_of(action)}
    error = {} if action.action else {"parse_error": text_in(call.result)}
    return told | {"type": "function", **error}


def _result(call: Call, content: list[dict[str, Any]]) -> dict[str, Any]:
    told = {"role": "tool", "tool_call_id": call.id, "function": call.action.tool_name}
    named = {"id": call.answer.event.id} if call.answer else {}
    failed = {"error": {"type": _failure(call), "message": text_in(call.result)}}
    return {**named, **told, "content": content, **(failed if call.failed else {})}


def _failure(call: Call) -> str:
    match call.answer:
        case Entry(event=AgentErrorEvent(classification=classification)):
            return ERRORS.get(classification, "unknown")
        case Entry(event=UserRejectObservation()):
            return "approval"
        case _:
            return "unknown"


def _part(part: Content) -> list[dict[str, Any]]:
    if isinstance(part, ImageContent):
        return [{"type": "image", "image": url} for url in part.image_urls]
    return [{"type": "text", "text": part.text}]


def _usage(usage: Usage) -> dict[str, Any]:
    """Theirs counts what came from a cache, or was written to one, apart from the input."""
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


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


INSPECT = document("inspect", ".eval", "an Inspect log with the conversation as its sample", write)
