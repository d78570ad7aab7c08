"""Which line of a script an attempt gets: the same whether it is asked in process or over HTTP."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from models.model import ModelRefused
from models.script import Answer, Failure, Script, exhausted, number_of_answer

Messages: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Cue:
    """The answer a request asks for, counted from 0, and the failure it gets first, if any."""

    script: Script
    number: int
    failure: Failure | None

    @property
    def answer(self) -> Answer:
        return self.script.answers[self.number]


class Playback:
    """One script being played to any number of conversations.

    The request alone tells which answer is due. All that is kept is how many failures of an answer
    a conversation has had.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._attempts: Counter[tuple[str, int]] = Counter()

    def cue(self, messages: Messages) -> Cue:
        """What this attempt gets. Raises ModelRefused past the end of the script."""
        number = number_of_answer(self.script, messages)
        if number >= len(self.script.answers):
            raise ModelRefused("script_exhausted", exhausted(self.script, number))
        return Cue(self.script, number, self._failure(number, messages))

    def _failure(self, number: int, messages: Messages) -> Failure | None:
        failures = self.script.answers[number].failures
        if not failures:
            return None
        key = (_conversation(messages), number)
        attempt = self._attempts[key]
        self._attempts[key] += 1
        return failures[attempt] if attempt < len(failures) else None


def _conversation(messages: Messages) -> str:
    """Tells conversations apart by all that came up to the last answer, or by all there is."""
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    past = messages[: answers[-1] + 1] if answers else messages
    return hashlib.sha256(json.dumps(past, sort_keys=True, default=str).encode()).hexdigest()
