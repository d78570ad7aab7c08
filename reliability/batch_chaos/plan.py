"""The plan of the batch: its samples, the model's replies, and the expected results."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.sample import Sample, build_sample, conversation_id
from perdure.evaluation.score import Score
from perdure.events.usage import Usage
from perdure.testing import script
from perdure.testing.script import ScriptedAnswer, ScriptedToolCall

USER = "chaos"
MODEL = "oracle"
GRADER = "model_graded"

SampleKind: TypeAlias = Literal[
    "plain", "wrong", "looked", "charged", "filed", "turned", "endless", "refused", "filtered"
]
Reply: TypeAlias = ScriptedAnswer | script.ScriptedFailure

KIND_COUNTS: dict[SampleKind, int] = {
    "plain": 8,
    "wrong": 4,
    "looked": 7,
    "charged": 7,
    "filed": 6,
    "turned": 5,
    "endless": 1,
    "refused": 1,
    "filtered": 1,
}
"""Of each so many in a row, mixed."""

MAX_RESPONSES = 4
"""The limit of each sample."""

GRADED = Usage(prompt_tokens=50, completion_tokens=3)

REFUSED: dict[SampleKind, script.ScriptedFailure] = {
    "refused": script.ScriptedFailure(status=401, code="invalid_api_key"),
    "filtered": script.ScriptedFailure(status=400, message="This violates our content policy."),
}

FAILED: dict[SampleKind, tuple[str, str]] = {
    "refused": ("configuration", "auth"),
    "filtered": ("agent", "content"),
}
"""Kind and code of the failure."""


@dataclass(frozen=True)
class PlannedSample:
    """A planned sample. `number` counts them from 0."""

    number: int
    kind: SampleKind

    @property
    def id(self) -> str:
        return f"s{self.number:04d}" if self.number % 50 else f"s{self.number:04d}/ä b"

    @property
    def word(self) -> str:
        return f"word{self.number * 7919 % 100_003}"

    @property
    def target(self) -> str:
        return self.word.upper() if self.kind == "filed" else self.word

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": self.id,
            "input": f"[#{self.number}] Say the word.",
            "target": self.target,
            "metadata": {"kind": self.kind},
        }
        if self.kind == "turned":
            row["turns"] = ["And now look."]
        if self.kind == "filed":
            row["files"] = {"word.txt": f"{self.word}\n"}
            row["setup"] = "tr a-z A-Z <word.txt >loud.txt"
        return row

    @property
    def sample(self) -> Sample:
        return build_sample(self.row)

    @property
    def is_graded(self) -> bool:
        return self.kind not in FAILED

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Return the model's replies in order; `{}` in the last one is the result of a tool."""
        chance = random.Random(f"sample {self.number}")
        replies = make_replies(self.kind, self.word, chance)
        return tuple(add_delay(item, nth, chance) for nth, item in enumerate(replies))

    @property
    def answers(self) -> int:
        return sum(isinstance(reply, ScriptedAnswer) for reply in self.replies)

    @property
    def answer(self) -> str | None:
        if self.kind in FAILED or self.kind == "endless":
            return None
        return "No idea." if self.kind == "wrong" else self.target

    @property
    def is_right(self) -> bool:
        return self.answer == self.target

    def grade(self) -> ScriptedAnswer:
        """Answer as the grading model, by the plan, so that its input is checked too."""
        letter = "C" if self.is_right else "I"
        return ScriptedAnswer(content=f"So it is.\nGRADE: {letter}", usage=GRADED, delay=0.1)


def plan_samples(count: int) -> list[PlannedSample]:
    """The same ones whenever so many are asked for, all kinds of them mixed."""
    kinds = [kind for kind, share in KIND_COUNTS.items() for _ in range(share)]
    random.Random("kinds").shuffle(kinds)
    return [PlannedSample(number, kinds[number % len(kinds)]) for number in range(count)]


def write_batch(
    folder: Path, name: str, samples: Sequence[PlannedSample], address: str, at_a_time: int
) -> Path:
    """The file of the batch, with its dataset beside it."""
    folder.mkdir(exist_ok=True)
    rows = "".join(json.dumps(sample.row, ensure_ascii=False) + "\n" for sample in samples)
    (folder / "samples.jsonl").write_text(rows)
    file = folder / "batch.toml"
    file.write_text(
        f'''name = "{name}"
dataset = "samples.jsonl"
concurrency = {at_a_time}

[agent]
system_prompt = "Do what you are told."
tools = ["reliability.chaos.tools:TOOLS", "reliability.batch_chaos.tools:TOOLS"]

[agent.model]
name = "openai/{MODEL}"
api_base = "{address}"
timeout = 60.0

[limits]
messages = {MAX_RESPONSES}

[[scorers]]
kind = "exact"

[[scorers]]
kind = "{GRADER}"
'''
    )
    return file


def expected_result(planned: PlannedSample, batch: str) -> SampleResult:
    """Compute the result that a sample must have, without its duration."""
    sample = planned.sample
    failed = FAILED.get(planned.kind)
    replies = [reply for reply in planned.replies if isinstance(reply, ScriptedAnswer)]
    exact = Score(value=planned.is_right)
    graded = Score(value="C" if planned.is_right else "I")
    attempt = AttemptResult(
        conversation_id=conversation_id(f"{USER}/{batch}", planned.id, 0),
        status="failed" if failed else "limited" if planned.kind == "endless" else "scored",
        scores={} if failed else {"exact": exact, GRADER: graded},
        answer=planned.answer,
        failure=AttemptFailure(kind=failed[0], code=failed[1]) if failed else None,
        limit="max_iterations" if planned.kind == "endless" else None,
        usage=add_usages([reply.usage for reply in replies]),
        grading=GRADED if planned.is_graded else Usage(),
        turns=planned.answers,
        tool_calls=sum(len(reply.tool_calls) for reply in replies),
    )
    return SampleResult(
        id=planned.id, target=sample.target, metadata=sample.metadata, attempts=(attempt,)
    )


def make_replies(kind: SampleKind, word: str, chance: random.Random) -> tuple[Reply, ...]:
    say = ScriptedAnswer(content=word)
    match kind:
        case "plain":
            return (say,)
        case "wrong":
            return (ScriptedAnswer(content="No idea."),)
        case "looked":
            return (_calls(_look(chance), _look(chance)), say)
        case "charged":
            return (_calls(_charge(chance), _look(chance)), say)
        case "filed":
            copy = ScriptedToolCall(
                name="copy", arguments={"source": "loud.txt", "target": "kept.txt"}
            )
            peek = ScriptedToolCall(name="peek", arguments={"path": "kept.txt"})
            return (_calls(copy), _calls(peek), ScriptedAnswer(content="{}"))
        case "turned":
            return (ScriptedAnswer(content="I shall."), _calls(_look(chance)), say)
        case "endless":
            return tuple(_calls(_look(chance)) for _ in range(MAX_RESPONSES))
        case "refused" | "filtered":
            return (REFUSED[kind],)


def add_delay(reply: Reply, nth: int, chance: random.Random) -> Reply:
    if not isinstance(reply, ScriptedAnswer):
        return reply
    return reply.model_copy(
        update={
            "delay": chance.uniform(0.1, 0.8),
            "chunk_delay": chance.choice((0.0, 0.0, 0.1)),
            "usage": Usage(prompt_tokens=100 + 10 * nth, completion_tokens=5),
        }
    )


def _calls(*calls: ScriptedToolCall) -> ScriptedAnswer:
    return ScriptedAnswer(tool_calls=calls)


def _look(chance: random.Random) -> ScriptedToolCall:
    seconds = round(chance.uniform(0.0, 0.5), 2)
    return ScriptedToolCall(
        name="look", arguments={"number": chance.randrange(10**6), "seconds": seconds}
    )


def _charge(chance: random.Random) -> ScriptedToolCall:
    seconds = round(chance.uniform(0.0, 1.0), 2)
    return ScriptedToolCall(
        name="charge", arguments={"amount": chance.randrange(10**6), "seconds": seconds}
    )


def add_usages(usages: Sequence[Usage]) -> Usage:
    return Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
    )
