"""An Inspect log (`.eval`) of a whole batch: every attempt that counts is a sample of it."""

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from events.entry import Entry
from events.usage import Usage
from exports.format import About
from exports.inspect_log import VERSION, finish, place
from exports.inspect_sample import Sample, Trial, usage_as
from exports.json_text import compact
from exports.totals import added
from exports.zipped import Zip

LONGEST = 1000
"""Characters of a text in the summary of a sample, and of the JSON of what is no text."""

SKIPPED = "Left out of the summary: it is too long."

UNSTARTED = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Told:
    """What is told of all samples together, as JSON has it; `spec` is their `EvalSpec`'s fields.

    `status` is theirs: `success`, or `started` where something is still missing.
    """

    status: str
    spec: dict[str, Any]
    results: dict[str, Any]


class BatchLog:
    """A log in the making: sample by sample, then its end.

    What is held of a sample is its summary, in few bytes.
    """

    def __init__(self) -> None:
        self._zip = Zip()
        self._summaries = _Summaries()
        self._spent: dict[str, Usage] = {}
        self._first = self._last = ""

    def sample(self, about: About, trial: Trial, entries: Iterable[Entry]) -> Iterator[bytes]:
        """The bytes of one more sample; all of them are to be taken before those of the next."""
        sample = Sample(about, trial)
        with self._zip.opened(place(trial.id, trial.epoch)) as member:
            for piece in sample.written(entries):
                member.write(piece)
                yield self._zip.taken()
        self._count(sample)
        self._summaries.add(_summary(sample, trial))
        yield self._zip.taken()

    def end(self, told: Told) -> Iterator[bytes]:
        with self._zip.opened("summaries.json") as member:
            for piece in self._summaries.written():
                member.write(piece)
                yield self._zip.taken()
        finish(self._zip, self._header(told))
        yield self._zip.taken()

    def _count(self, sample: Sample) -> None:
        for model, usage in sample.spent.items():
            self._spent[model] = added(self._spent.get(model, Usage(model=model)), usage)
        totals = sample.totals
        self._first = min(filter(None, (self._first, totals.first)), default="")
        self._last = max(self._last, totals.last)

    def _header(self, told: Told) -> dict[str, Any]:
        return {
            "version": VERSION,
            "status": told.status,
            "eval": {"created": self._first or UNSTARTED, **told.spec},
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": told.results,
            "stats": {
                "started_at": self._first,
                "completed_at": self._last,
                "model_usage": usage_as(self._spent),
            },
        }


class _Summaries:
    """Those of all samples as one JSON list, compressed while it grows."""

    def __init__(self) -> None:
        self._pressed = zlib.compressobj()
        self._pieces: list[bytes] = []
        self._count = 0

    def add(self, summary: dict[str, Any]) -> None:
        self._press((b"," if self._count else b"[") + compact(summary))
        self._count += 1

    def written(self) -> Iterator[bytes]:
        """The list, once all are added."""
        self._press(b"]" if self._count else b"[]")
        self._pieces.append(self._pressed.flush())
        pressed = zlib.decompressobj()
        for piece in self._pieces:
            yield pressed.decompress(piece)
        yield pressed.flush()

    def _press(self, body: bytes) -> None:
        if piece := self._pressed.compress(body):
            self._pieces.append(piece)


def _summary(sample: Sample, trial: Trial) -> dict[str, Any]:
    """What a list of samples shows: nothing in it is long."""
    told = {
        "error": trial.error and trial.error[:LONGEST],
        "limit": trial.limit and trial.limit["type"],
        "retries": len(trial.retries) or None,
        "scores": {name: _short(score) for name, score in trial.scores.items()} or None,
    }
    return {
        **sample.summary,
        "input": sample.input[:LONGEST],
        "target": _text(trial.target),
        "metadata": _short(trial.metadata),
        "uuid": sample.about.conversation_id,
        "total_time": trial.seconds,
        "turn_count": trial.turns,
    } | {name: value for name, value in told.items() if value is not None}


def _text(target: str | list[str]) -> str | list[str]:
    return target[:LONGEST] if isinstance(target, str) else _few(target)


def _few(targets: list[str]) -> list[str]:
    return [one[:LONGEST] for one in targets[:10]]


def _short(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _shortened(value) for name, value in fields.items()}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, list | dict) and len(json.dumps(value)) > LONGEST:
        return SKIPPED
    return value
