"""The rows of the chat sets that are run, and what the scripted model answers to each.

To a known part of them it gives an answer that is right; to the others the right answer to another
row of the same set, which is wrong here. Both are held against the scorers beforehand: a row that
cannot be answered in both ways is left out, and counted.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from examples.evals.package import ChatSet, Line, chat_sets
from perdure.evaluation.sample import InvalidSample, Sample, build_sample
from perdure.evaluation.score import ScoringError, TextScorer
from perdure.evaluation.scorers.exact import Exact
from perdure.evaluation.scorers.includes import Includes
from perdure.testing.script import Script, ScriptedAnswer

SCORERS: tuple[TextScorer, ...] = (Includes(), Exact(strict=True))

KNOWN_SHARE = 0.63
"""How much of the rows is answered rightly, about: which ones they are is a matter of hashes."""

MAX_LINES_PER_SET = 50
"""Lines of a set that are looked at: many sets have a few of them, and a few have very many."""

WRONG_ANSWER = "?"
"""A wrong answer where no other row's answer is one: hardly any right one stands in it."""


class TooFew(Exception):
    """The data set has fewer rows than were requested."""


@dataclass(frozen=True)
class Row:
    """`fields` is a line of the dataset; `question` names it, in 64 hexadecimal digits."""

    fields: Mapping[str, Any]
    question: str
    answer: str

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def known(self) -> bool:
        return is_known(self.question)

    @property
    def script(self) -> Script:
        return Script(
            name=self.question, answers=(ScriptedAnswer(content=self.answer),), repeat=True
        )


@dataclass
class Choice:
    """`left_out` counts rows that stand between those chosen, by why they cannot be used."""

    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class Unfit(Exception):
    """A row that is left out, and why."""


def choose_rows(count: int) -> Choice:
    """A row of each set, then another of each, until there are so many.

    Raises PackageMissing and TooFew.
    """
    choice = Choice()
    questions: set[str] = set()
    for chat_set, line in interleave(chat_sets(MAX_LINES_PER_SET)):
        try:
            row = _row(chat_set, line, questions)
        except Unfit as error:
            choice.left_out[str(error)] += 1
            continue
        questions.add(row.question)
        choice.rows.append(row)
        if len(choice.rows) == count:
            return choice
    raise TooFew(f"There are {len(choice.rows):,} rows, not {count:,}: ask for as many at most.")


def question_of(texts: Iterable[str]) -> str:
    """The name of what the user says, however its lines and messages are parted."""
    words = " ".join(word for text in texts for word in text.split())
    return hashlib.sha256(words.encode()).hexdigest()


def is_known(question: str) -> bool:
    return int(question[:8], 16) < KNOWN_SHARE * 16**8


def interleave(sets: Sequence[ChatSet]) -> Iterator[tuple[ChatSet, Line]]:
    for lines in zip_longest(*(item.lines for item in sets)):
        for chat_set, line in zip(sets, lines, strict=True):
            if line is not None:
                yield chat_set, line


def _row(chat_set: ChatSet, line: Line, questions: set[str]) -> Row:
    """Raises Unfit."""
    fields = {
        "id": f"{chat_set.name}:{line.number}",
        "input": line.fields.get("input"),
        "ideal": line.fields.get("ideal"),
        "set": chat_set.name,
        "graded": chat_set.graded,
    }
    if not isinstance(fields["input"], list):
        raise Unfit("its input is no chat")
    sample = _sample(fields)
    question = question_of([sample.question])
    if question in questions:
        raise Unfit("its question came before")
    right = find_answer(sample, rotate_targets(question, sample.target), 1.0, "no answer is right")
    others = other_answers(chat_set, line)
    wrong = find_answer(sample, [*others, WRONG_ANSWER], 0.0, "no answer is wrong")
    return Row(fields, question, right if is_known(question) else wrong)


def _sample(fields: Mapping[str, Any]) -> Sample:
    """The row as the batch will read it. Raises Unfit."""
    try:
        return build_sample(
            {"id": fields["id"], "input": fields["input"], "target": fields["ideal"]}
        )
    except InvalidSample as error:
        what = "nobody asks" if "asks for anything" in str(error) else "it is no sample"
        raise Unfit(what) from error


def rotate_targets(question: str, targets: Sequence[str]) -> list[str]:
    """The targets, from one of them on that the question's name decides."""
    first = int(question[8:16], 16) % max(1, len(targets))
    return [*targets[first:], *targets[:first]]


def other_answers(chat_set: ChatSet, line: Line) -> Iterator[str]:
    """Return right answers of other rows of the set, from the next line on."""
    place = chat_set.lines.index(line)
    for other in (*chat_set.lines[place + 1 :], *chat_set.lines[:place]):
        ideal = other.fields.get("ideal")
        yield from (
            item
            for item in (ideal if isinstance(ideal, list) else [ideal])
            if isinstance(item, str)
        )


def find_answer(sample: Sample, answers: Iterable[str], value: float, otherwise: str) -> str:
    """The first answer to which every scorer gives this value. Raises Unfit."""
    for answer in (item.strip() for item in answers):
        if answer and all(_value(scorer, sample, answer) == value for scorer in SCORERS):
            return answer
    raise Unfit(otherwise)


def _value(scorer: TextScorer, sample: Sample, answer: str) -> float | None:
    try:
        return scorer.score(sample, answer).numbers[""]
    except ScoringError:
        return None
