"""A batch with every case that an Inspect log distinguishes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.score import Score
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.evaluation.summary import Summary, summarize
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.usage import Usage
from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_evaluation import batch_header, sample_metadata
from perdure.exports.inspect_log import InspectLog
from tests.builders import CONVERSATION, agent, opened_event, prompt, spec_event, user
from tests.evaluation.results import attempt
from tests.exports.sample_log import CHAT, entries_of, sample_entries

EPOCHS = 2

SPEC: BatchSpec = parse_batch(
    {
        "name": "sums",
        "dataset": "sums.jsonl",
        "agent": {"model": {"name": "openai/gpt-x"}},
        "epochs": EPOCHS,
        "reducers": ["mean", "pass@2"],
        "scorers": [{"kind": "exact"}, {"kind": "includes"}],
        "limits": {"messages": 7, "time": 60},
    }
)

NAMES = ("a", "b/ü <1>", "c", "d", "e")

GRADING = Usage(prompt_tokens=7, completion_tokens=1, cost=0.5, model="judge")


def results() -> list[SampleResult]:
    """Return results of all but the second epoch of the last sample."""
    late = AttemptFailure(kind="infrastructure", code="timeout", detail="No answer.")
    lost = AttemptFailure(kind="configuration", code="auth", detail="Set a key.")
    limited: dict[str, Any] = {"limit": "max_iterations", "status": "limited"}
    tables = Score(value={"right": True, "style": 0.25}, explanation="Because.")
    return [
        _result("a", attempt("C", grading=GRADING), attempt("P", 1)),
        _result(
            "b/ü <1>",
            attempt(None, failure=late),
            attempt(True, number=1, scores={"exact": Score(value=True), "includes": tables}),
            attempt(False, 1, **limited),
        ),
        _result("c", attempt(None, failure=lost), attempt(0.5, 1)),
        _result("d", attempt("I"), attempt("N", 1, limit="deadline", status="limited")),
        _result("e", attempt(1.0)),
    ]


def _result(name: str, *attempts: AttemptResult) -> SampleResult:
    targets = ("2", "two") if name == "c" else ("2",)
    metadata = {"level": "easy", "nested": {"n": [1]}, "long": "x" * 5000}
    return SampleResult(id=name, target=targets, metadata=metadata, attempts=attempts)


def batch_summary() -> Summary:
    return summarize(results(), EPOCHS * len(NAMES), SPEC.reducers)


def conversation(name: str) -> list[Entry]:
    """Return the whole log for one sample, none for another, a few messages for the others."""
    if name == "a":
        return sample_entries()
    if name == "c":
        return []
    events: list[AnyEvent] = [opened_event(), spec_event(), prompt(), user("What is 1 + 1?")]
    return entries_of([*((event, None) for event in events), (agent("2"), CHAT)])


def batch_log() -> bytes:
    """Return the Inspect log of the batch."""
    made, about = InspectLog(), ExportMetadata(CONVERSATION, "finished", model="openai/gpt-x")
    pieces: list[bytes] = []
    for result in results():
        for final in result.final_attempts:
            metadata = replace(about, conversation_id=final.conversation_id)
            trial = sample_metadata(result, final, SPEC)
            pieces += made.write_sample(metadata, trial, conversation(result.id))
    return b"".join(_all(pieces, made.write_end(batch_header(SPEC, batch_summary(), NAMES, "0.1"))))


def _all(*pieces: Iterable[bytes]) -> Iterable[bytes]:
    for some in pieces:
        yield from some
