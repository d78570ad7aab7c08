"""A batch with everything in it that an Inspect log has to decide about."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evaluation.inspect_log import told_of, trial_of
from evaluation.result import Attempt, Failure, SampleResult
from evaluation.score import Score
from evaluation.spec import BatchSpec, batch_of
from evaluation.summary import Summary
from evaluation.tally import summary
from events.entry import Entry
from events.event import AnyEvent
from events.usage import Usage
from exports.format import About
from exports.inspect_batch import BatchLog
from tests.builders import CONVERSATION, agent, configured, opened, prompt, user
from tests.evaluation.results import attempt
from tests.exports.story import CHAT, logged, story

EPOCHS = 2

SPEC: BatchSpec = batch_of(
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
    """The second epoch of the last sample has no result yet."""
    late = Failure(kind="infrastructure", code="timeout", detail="No answer.")
    lost = Failure(kind="configuration", code="auth", detail="Set a key.")
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


def _result(name: str, *attempts: Attempt) -> SampleResult:
    targets = ("2", "two") if name == "c" else ("2",)
    metadata = {"level": "easy", "nested": {"n": [1]}, "long": "x" * 5000}
    return SampleResult(id=name, target=targets, metadata=metadata, attempts=attempts)


def summed() -> Summary:
    return summary(results(), EPOCHS * len(NAMES), SPEC.reducers)


def conversation(name: str) -> list[Entry]:
    """The story for one sample, none for another, and a few words for all others."""
    if name == "a":
        return story()
    if name == "c":
        return []
    told: list[AnyEvent] = [opened(), configured(), prompt(), user("What is 1 + 1?")]
    return logged([*((event, None) for event in told), (agent("2"), CHAT)])


def written() -> bytes:
    """The Inspect log of it."""
    made, about = BatchLog(), About(CONVERSATION, "finished", model="openai/gpt-x")
    pieces: list[bytes] = []
    for result in results():
        for one in result.final:
            told = replace(about, conversation_id=one.conversation_id)
            trial = trial_of(result, one, SPEC)
            pieces += made.sample(told, trial, conversation(result.id))
    return b"".join(_all(pieces, made.end(told_of(SPEC, summed(), NAMES, "0.1"))))


def _all(*pieces: Iterable[bytes]) -> Iterable[bytes]:
    for some in pieces:
        yield from some
