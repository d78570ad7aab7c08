"""Inspect logs (`.eval`) of a conversation, as the one sample of an evaluation, and of a batch.

A zip of JSON, as inspect_ai 0.3 reads it. The messages of a sample are the whole conversation; its
events are the calls of the model and of tools, and all else as `info`.
"""

import gzip
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from typing_extensions import Buffer

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
from perdure.exports.json_text import Json, compact_json

VERSION = 2

EVAL_STATUSES = {"running": "started", "error": "error", "stuck": "error"}
"""Inspect's statuses for ours; all others are a success."""

MAX_SUMMARY_CHARS = 1000
"""Characters of a text in the summary of a sample, and of any other value's JSON."""

OMITTED = "Left out of the summary: it is too long."

NEVER_STARTED = "1970-01-01T00:00:00Z"

FILE_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every file in a zip: nobody needs it, and equal logs make equal bytes."""

PIECE_BYTES = 64 * 1024


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    log, sample = InspectLog(), SampleWriter(about)
    yield from log.write(sample, entries)
    yield from log.write_end(_conversation_header(sample))


class InspectLog:
    """A log that is written sample by sample; of each, only its summary stays in memory."""

    def __init__(self) -> None:
        self._bytes = _ByteQueue()
        self._zip = zipfile.ZipFile(self._bytes, "w")
        self._summaries = io.BytesIO()
        self._summary_writer = gzip.GzipFile(fileobj=self._summaries, mode="wb")
        self._separator = b"["
        self._usage: defaultdict[str, Usage] = defaultdict(Usage)
        self._first = self._last = ""

    def write_sample(
        self, about: ExportMetadata, metadata: SampleMetadata, entries: Iterable[Entry]
    ) -> Iterator[bytes]:
        """Yield the bytes of one more sample; use all of them before those of the next."""
        return self.write(SampleWriter(about, metadata), entries)

    def write(self, sample: SampleWriter, entries: Iterable[Entry]) -> Iterator[bytes]:
        path = "samples/{id}_epoch_{epoch}.json".format(**sample.head)
        yield from self._write_file(path, sample.write(entries))
        for model, usage in sample.usage_by_model().items():
            self._usage[model] += usage
        totals = sample.totals
        self._first = min(filter(None, (self._first, totals.first)), default="")
        self._last = max(self._last, totals.last)
        self._summary_writer.write(self._separator + compact_json(_summary(sample)))
        self._separator = b","

    def write_end(self, header: Json) -> Iterator[bytes]:
        """Yield the last bytes of the log.

        `header` has its fields as JSON but for times and usage. `status` is `success`, or `started`
        if a result is still missing.
        """
        yield from self._write_file("summaries.json", self._end_summaries())
        whole = {
            "version": VERSION,
            "status": header["status"],
            "eval": {"created": self._first or NEVER_STARTED, **header["eval"]},
            "plan": {"name": "plan", "steps": [], "config": {}},
            "stats": {
                "model_usage": format_usage(self._usage),
                **format_times(self._first, self._last),
            },
        }
        start = {key: whole[key] for key in ("version", "eval", "plan")}
        self._zip.writestr(_file_info("_journal/start.json"), compact_json(start))
        self._zip.writestr(_file_info("header.json"), compact_json(header | whole))
        self._zip.close()
        yield self._bytes.take()

    def _end_summaries(self) -> Iterator[bytes]:
        self._summary_writer.write(b"[]" if self._separator == b"[" else b"]")
        self._summary_writer.close()
        self._summaries.seek(0)
        return iter(partial(gzip.GzipFile(fileobj=self._summaries).read, PIECE_BYTES), b"")

    def _write_file(self, path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        with self._zip.open(_file_info(path), "w", force_zip64=True) as member:
            for piece in pieces:
                member.write(piece)
                yield self._bytes.take()
        yield self._bytes.take()


def _file_info(path: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path, FILE_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


class _ByteQueue(io.RawIOBase):
    """A file for a zip that holds only the bytes that nobody took yet."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: Buffer, /) -> int:
        self._pieces.append(bytes(piece))
        return len(self._pieces[-1])

    def take(self) -> bytes:
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body


def _summary(sample: SampleWriter) -> Json:
    """Summarize a sample for a list of samples: no value of a batch's sample in it is long."""
    summary, attempt = sample.summary(), sample.metadata
    if attempt is None:
        return summary
    optional = {
        "error": attempt.error and attempt.error[:MAX_SUMMARY_CHARS],
        "limit": attempt.limit and attempt.limit["type"],
        "retries": len(attempt.retries) or None,
        "scores": {name: _shorten_fields(score) for name, score in attempt.scores.items()} or None,
    }
    targets = attempt.target
    return {
        **summary,
        "input": sample.input[:MAX_SUMMARY_CHARS],
        "target": [target[:MAX_SUMMARY_CHARS] for target in targets[:10]]
        if isinstance(targets, list)
        else targets[:MAX_SUMMARY_CHARS],
        "metadata": _shorten_fields(attempt.metadata),
        "uuid": sample.conversation.conversation_id,
        "total_time": attempt.seconds,
        "turn_count": attempt.turns,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _shorten_fields(fields: Json) -> Json:
    return {name: _shorten(value) for name, value in fields.items()}


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_SUMMARY_CHARS]
    if isinstance(value, list | dict) and len(json.dumps(value)) > MAX_SUMMARY_CHARS:
        return OMITTED
    return value


def _conversation_header(sample: SampleWriter) -> Json:
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
        **format_error(sample.error),
    }


INSPECT = single_file_format(
    "inspect", ".eval", "an Inspect log with the conversation as its sample", write
)
