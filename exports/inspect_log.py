"""An Inspect log (`.eval`): the conversation as the one sample of an evaluation without scores.

A zip of JSON, as inspect_ai 0.3 reads it. What is neither said nor done is an `info` event of the
sample, so that a condensation and its summary show in the transcript, and all messages are there.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from events.entry import Entry
from exports.format import About, document
from exports.inspect_sample import Sample, error_as
from exports.json_text import compact
from exports.zipped import Zip

VERSION = 2
EPOCH = 1

ENDED = {"running": "started", "error": "error", "stuck": "error"}
"""Our statuses in their terms; all others are a success."""


def write(about: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    made, sample = Zip(), Sample(about)
    with made.opened(place(about.conversation_id, EPOCH)) as member:
        for piece in sample.written(entries):
            member.write(piece)
            yield made.taken()
    made.add("summaries.json", compact([sample.summary]))
    finish(made, _header(sample))
    yield made.taken()


def place(sample: str, epoch: int) -> str:
    """Where a sample lies in the zip."""
    return f"samples/{sample}_epoch_{epoch}.json"


def finish(made: Zip, header: dict[str, Any]) -> None:
    """Write what a log tells of all samples, and what it told when it began."""
    start = {key: header[key] for key in ("version", "eval", "plan")}
    made.add("_journal/start.json", compact(start))
    made.add("header.json", compact(header))
    made.close()


def _header(sample: Sample) -> dict[str, Any]:
    about = sample.about
    ended = {"error": error_as(sample.error)} if sample.error else {}
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
        "stats": sample.used,
        **ended,
    }


INSPECT = document("inspect", ".eval", "an Inspect log with the conversation as its sample", write)
