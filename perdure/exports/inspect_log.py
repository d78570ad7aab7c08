"""Inspect logs (`.eval`) of a conversation, as the one sample of an evaluation, and of a batch.

A zip of JSON, as inspect_ai 0.3 reads it. Events other than messages and calls are `info` events of
the sample, so that a condensation and its summary show in the transcript, beside all messages.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from perdure.events.entry import Entry
from perdure.events.usage import Usage
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.inspect_sample import (
    SampleMetadata,
    SampleWriter,
    format_error,
    format_times,
    format_usage,
)
from perdure.exports.json_text import compact_json
from perdure.exports.zip_stream import ZipStream

VERSION = 2

EVAL_STATUSES = {"running": "started", "error": "error", "stuck": "error"}
"""Inspect's statuses for ours; all others are a success."""

MAX_SUMMARY_CHARS = 1000
"""Characters of a text in the summary of a sample, and of any other value's JSON."""

OMITTED = "Left out of the summary: it is too long."

NEVER_STARTED = "1970-01-01T00:00:00Z"


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    log, sample = InspectLog(), SampleWriter(about)
    yield from log.write(sample, entries)
    yield from log.write_end(_conversation_header(sample))


class InspectLog:
    """A log that is written sample by sample, then ended.

    Only a sample's summary stays in memory.
    """

    def __init__(self) -> None:
        self._zip = ZipStream()
        self._summaries = _Summaries()
        self._usage: dict[str, Usage] = {}
        self._first = self._last = ""

    def write_sample(
        self, about: ExportMetadata, metadata: SampleMetadata, entries: Iterable[Entry]
    ) -> Iterator[bytes]:
        """Yield the bytes of one more sample; use all of them before those of the next."""
        return self.write(SampleWriter(about, metadata), entries)

    def write(self, sample: SampleWriter, entries: Iterable[Entry]) -> Iterator[bytes]:
        path = "samples/{id}_epoch_{epoch}.json".format(**sample.head)
        yield from self._write_file(path, sample.write(entries))
        self._count(sample)
        self._summaries.add(_summary(sample))
        yield self._zip.take_bytes()

    def write_end(self, header: dict[str, Any]) -> Iterator[bytes]:
        """Yield the last bytes of the log.

        `header` has its fields as JSON but for times and usage. `status` is `success`, or `started`
        if a result is still missing.
        """
        yield from self._write_file("summaries.json", self._summaries.written())
        stats = {"model_usage": format_usage(self._usage), **format_times(self._first, self._last)}
        whole = {
            "version": VERSION,
            "status": header["status"],
            "eval": {"created": self._first or NEVER_STARTED, **header["eval"]},
            "plan": {"name": "plan", "steps": [], "config": {}},
            "stats": stats,
        }
        start = {key: whole[key] for key in ("version", "eval", "plan")}
        self._zip.add("_journal/start.json", compact_json(start))
        self._zip.add("header.json", compact_json(header | whole))
        self._zip.close()
        yield self._zip.take_bytes()

    def _write_file(self, path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        with self._zip.open_file(path) as member:
            for piece in pieces:
                member.write(piece)
                yield self._zip.take_bytes()

    def _count(self, sample: SampleWriter) -> None:
        for model, usage in sample.usage_by_model.items():
            self._usage[model] = self._usage.get(model, Usage(model=model)) + usage
        totals = sample.totals
        self._first = min(filter(None, (self._first, totals.first)), default="")
        self._last = max(self._last, totals.last)


class _Summaries:
    """The summaries of all samples as one JSON list, compressed while it grows."""

    def __init__(self) -> None:
        self._pressed = zlib.compressobj()
        self._pieces: list[bytes] = []
        self._count = 0

    def add(self, summary: dict[str, Any]) -> None:
        self._press((b"," if self._count else b"[") + compact_json(summary))
        self._count += 1

    def written(self) -> Iterator[bytes]:
        """Yield the list, once all summaries are added."""
        self._press(b"]" if self._count else b"[]")
        self._pieces.append(self._pressed.flush())
        pressed = zlib.decompressobj()
        for piece in self._pieces:
            yield pressed.decompress(piece)
        yield pressed.flush()

    def _press(self, body: bytes) -> None:
        if piece := self._pressed.compress(body):
            self._pieces.append(piece)


def _summary(sample: SampleWriter) -> dict[str, Any]:
    """Summarize a sample for a list of samples: no value of a batch's sample in it is long."""
    if (trial := sample.metadata) is None:
        return sample.summary
    optional = {
        "error": trial.error and trial.error[:MAX_SUMMARY_CHARS],
        "limit": trial.limit and trial.limit["type"],
        "retries": len(trial.retries) or None,
        "scores": {name: _shorten_fields(score) for name, score in trial.scores.items()} or None,
    }
    return {
        **sample.summary,
        "input": sample.input[:MAX_SUMMARY_CHARS],
        "target": [target[:MAX_SUMMARY_CHARS] for target in trial.target[:10]]
        if isinstance(trial.target, list)
        else trial.target[:MAX_SUMMARY_CHARS],
        "metadata": _shorten_fields(trial.metadata),
        "uuid": sample.conversation.conversation_id,
        "total_time": trial.seconds,
        "turn_count": trial.turns,
    } | {name: value for name, value in optional.items() if value is not None}


def _shorten_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _shorten(value) for name, value in fields.items()}


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_SUMMARY_CHARS]
    if isinstance(value, list | dict) and len(json.dumps(value)) > MAX_SUMMARY_CHARS:
        return OMITTED
    return value


def _conversation_header(sample: SampleWriter) -> dict[str, Any]:
    about = sample.conversation
    spec = {
        "eval_id": about.conversation_id,
        "run_id": about.conversation_id,
        "task": about.title or "conversation",
        "task_id": about.conversation_id,
        "dataset": {"samples": 1, "sample_ids": [about.conversation_id]},
        "model": sample.model,
        "config": {"epochs": 1},
        "packages": {"perdure": about.version},
    }
    return {
        "status": EVAL_STATUSES.get(about.status, "success"),
        "eval": spec,
        "results": {"total_samples": 1, "completed_samples": int(not sample.error), "scores": []},
        **({"error": format_error(sample.error)} if sample.error else {}),
    }


INSPECT = single_file_format(
    "inspect", ".eval", "an Inspect log with the conversation as its sample", write
)
