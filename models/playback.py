"""Which line of a script an attempt gets: the same whether it is asked in process or over HTTP."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from models.model import ModelRefused, Purpose
from models.script import Answer, Failure, Script, exhausted, number_of_answer

Messages: TypeAlias = Sequence[Mapping[str, Any]]

MADE_UP: dict[Purpose, str] = {"condense": "SUMMARY", "title": "TITLE", "ask": "ANSWER"}
"""What a script says for these that has no line of its own: this, of so many messages."""


@dataclass(frozen=True)
class Cue:
    """The answer a request gets, its number counted from 0, and the failure before it, if any."""

    script: Script
    number: int
    answer: Answer
    failure: Failure | None = None
    purpose: Purpose = ""

    @property
    def label(self) -> str:
        """The script's name, and what the answer is for."""
        return f"{self.script.name}.{self.purpose}" if self.purpose else self.script.name

    def calls(self) -> Iterator[tuple[str, str, str]]:
        """Id, name and arguments of each tool call."""
        for position, call in enumerate(self.answer.tool_calls):
            call_id = call.id or self.script.call_id(self.number, position)
            yield call_id, call.name, call.text


class Playback:
    """One script being played to any number of conversations.

    The request alone tells which answer is due. All that is kept is how many failures of an answer
    a conversation has had.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._attempts: Counter[tuple[str, Purpose, int]] = Counter()

    def cue(self, messages: Messages, purpose: Purpose = "", number: int | None = None) -> Cue:
        """What this attempt gets; `number` counts the answers before it, where the caller knows.

        Raises ModelRefused past the end of the script.
        """
        if number is None:
            number = 0 if purpose in MADE_UP else number_of_answer(self.script, messages)
        answer = self._answer(purpose, number, len(messages))
        failure = self._too_long(messages) or self._failure(answer, messages, purpose, number)
        return Cue(self.script, number, answer, failure, purpose)

    def _answer(self, purpose: Purpose, number: int, asked: int) -> Answer:
        answers = self.script.answers_for(purpose)
        if not answers:
            return Answer(content=f"{MADE_UP[purpose]} of {asked} messages")
        if number < len(answers):
            return answers[number]
        if self.script.repeat or purpose in MADE_UP:
            return answers[-1]
        what = exhausted(self.script.name, len(answers), number)
        raise ModelRefused("script_exhausted", what)

    def _too_long(self, messages: Messages) -> Failure | None:
        most = self.script.max_messages
        if most is None or len(messages) <= most:
            return None
        what = f"The context window holds {most} messages and was given {len(messages)}."
        return Failure(status=400, code="context_length_exceeded", message=what)

    def _failure(
        self, answer: Answer, messages: Messages, purpose: Purpose, number: int
    ) -> Failure | None:
        if not answer.failures:
            return None
        key = (_conversation(messages), purpose, number)
        attempt = self._attempts[key]
        self._attempts[key] += 1
        return answer.failures[attempt] if attempt < len(answer.failures) else None


def _conversation(messages: Messages) -> str:
    """Tells conversations apart by all that came up to the last answer, or by all there is."""
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    past = messages[: answers[-1] + 1] if answers else messages
    return hashlib.sha256(json.dumps(past, sort_keys=True, default=str).encode()).hexdigest()
