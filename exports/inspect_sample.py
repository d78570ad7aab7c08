"""A conversation as a sample of an Inspect log, alone or as one of a batch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from events.content import text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.usage import Usage
from exports.chat import chat
from exports.format import About
from exports.inspect_messages import formed
from exports.json_text import document
from exports.notes import QUIET, moment, note
from exports.totals import Totals, added
from exports.turns import Turn, turns

GRADER = "grader"
"""What a model is called that graded and was not named."""


@dataclass(frozen=True)
class Trial:
    """What a batch knows of a conversation that was made for a sample of it, as JSON has it.

    `epoch` counts from 1. `retries` are the errors of earlier attempts. `spent` is what is told
    where the conversation cannot be read, `grading` what was spent beside it.
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
        """Of the sample; the summary of it has some of them in short."""
        told = {
            "scores": self.scores or None,
            "error": None if self.error is None else error_as(self.error),
            "error_retries": [error_as(one) for one in self.retries] or None,
            "limit": self.limit,
        }
        counted = {"total_time": self.seconds, "turn_count": self.turns}
        return {name: value for name, value in told.items() if value is not None} | counted


class Sample:
    """Keeps in mind what is told of a sample once its messages are written."""

    def __init__(self, about: About, trial: Trial | None = None) -> None:
        self.about = about
        self.trial = trial
        self.totals = Totals()
        self.count = 0
        self.input = ""
        self.last: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []

    def written(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """The sample as JSON, piece by piece."""
        return document(self.head, "messages", self._messages(entries), self._tail)

    def _messages(self, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        for turn in turns(self.totals.watch(entries)):
            self._look(turn)
            for message in chat(turn):
                told = formed(message, turn)
                self.count += 1
                self.last = told if told["role"] == "assistant" else self.last
                yield told

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
        trial = self.trial or Trial(self.about.conversation_id)
        return {"id": trial.id, "epoch": trial.epoch, "target": trial.target}

    @property
    def told(self) -> dict[str, Any]:
        """What became of the conversation."""
        about = self.about
        told = {"status": about.status, "reason": about.reason, "title": about.title}
        told |= {"unreadable": self.totals.lost}
        return {key: value for key, value in told.items() if value}

    @property
    def error(self) -> str | None:
        if self.trial is not None:
            return self.trial.error
        if self.about.status not in ("error", "stuck"):
            return None
        return self.about.reason or self.about.status

    def _tail(self) -> dict[str, Any]:
        told = {
            "input": self.input,
            "output": self._output(),
            "metadata": self.told if self.trial is None else self.trial.metadata,
            "store": {} if self.trial is None else {"perdure": self.told},
            "events": self.events,
            **self.used,
            "uuid": self.about.conversation_id,
        }
        if self.trial is not None:
            return told | self.trial.fields()
        return told | ({"error": error_as(self.error)} if self.error else {})

    @property
    def summary(self) -> dict[str, Any]:
        error = {"error": self.error} if self.error else {}
        told = {**self.head, "input": self.input, "metadata": self.told, **self.used, **error}
        return told | {"completed": True, "message_count": self.count}

    @property
    def spent(self) -> dict[str, Usage]:
        """By model."""
        found = {model or self.model: usage for model, usage in self.totals.by_model.items()}
        if self.trial is None:
            return found
        if not found and self.trial.spent:
            found[self.trial.spent.model or self.model] = self.trial.spent
        grading = self.trial.grading
        if grading:
            name = grading.model or GRADER
            found[name] = added(found.get(name, Usage(model=name)), grading)
        return found

    @property
    def used(self) -> dict[str, Any]:
        return {"model_usage": usage_as(self.spent), **self.moments}

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


def usage_as(spent: dict[str, Usage]) -> dict[str, Any]:
    return {model: _usage(usage) for model, usage in spent.items()}


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


def error_as(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}
