"""The selection of a script's answer for a request, in process and over HTTP alike."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from perdure.models.model import ModelRefused, Purpose
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, answer_number

Messages: TypeAlias = Sequence[Mapping[str, Any]]

DEFAULT_TEXTS: dict[Purpose, str] = {"condense": "SUMMARY", "title": "TITLE", "ask": "ANSWER"}
"""The start of the default text for these purposes; the number of messages follows."""


@dataclass(frozen=True)
class ScriptedReply:
    """The answer that a request gets, its number from 0, and the failure in its place, if any."""

    script: Script
    number: int
    answer: ScriptedAnswer
    failure: ScriptedFailure | None = None
    purpose: Purpose = ""

    @property
    def label(self) -> str:
        """The script's name, and the answer's purpose if it has one."""
        return f"{self.script.name}.{self.purpose}" if self.purpose else self.script.name

    def tool_calls(self) -> Iterator[tuple[str, str, str]]:
        """Yield the id, name and arguments of each tool call."""
        for position, call in enumerate(self.answer.tool_calls):
            call_id = call.id or self.script.call_id(self.number, position)
            yield call_id, call.name, call.arguments_text


class ScriptPlayer:
    """A player of one script for any number of conversations.

    The request alone determines its answer; the player's state is only the number of attempts at
    each answer in each conversation.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._attempts: Counter[tuple[str, Purpose, int]] = Counter()

    def next_reply(
        self, messages: Messages, purpose: Purpose = "", number: int | None = None
    ) -> ScriptedReply:
        """Select the reply; `number` counts earlier answers. Raises ModelRefused after the last."""
        if number is None:
            number = 0 if purpose in DEFAULT_TEXTS else answer_number(self.script, messages)
        answer = self._answer(purpose, number, len(messages))
        failure = self._too_long(messages) or self._failure(answer, messages, purpose, number)
        return ScriptedReply(self.script, number, answer, failure, purpose)

    def _answer(self, purpose: Purpose, number: int, message_count: int) -> ScriptedAnswer:
        answers = self.script.answers_for(purpose)
        if not answers:
            return ScriptedAnswer(content=f"{DEFAULT_TEXTS[purpose]} of {message_count} messages")
        if number < len(answers):
            return answers[number]
        if self.script.repeat or purpose in DEFAULT_TEXTS:
            return answers[-1]
        has = f"{len(answers)} answer{'s' if len(answers) > 1 else ''}"
        raise ModelRefused(
            "script_exhausted",
            f"The script {self.script.name} has {has} and the conversation asked for answer "
            f"{number + 1}: add answers or end with one that calls finish.",
        )

    def _too_long(self, messages: Messages) -> ScriptedFailure | None:
        limit = self.script.max_messages
        if limit is None or len(messages) <= limit:
            return None
        detail = f"The context window holds {limit} messages and was given {len(messages)}."
        return ScriptedFailure(status=400, code="context_length_exceeded", message=detail)

    def _failure(
        self, answer: ScriptedAnswer, messages: Messages, purpose: Purpose, number: int
    ) -> ScriptedFailure | None:
        if not answer.failures:
            return None
        key = (_conversation_hash(messages), purpose, number)
        attempt = self._attempts[key]
        self._attempts[key] += 1
        return answer.failures[attempt] if attempt < len(answer.failures) else None


def _conversation_hash(messages: Messages) -> str:
    """Hash the messages up to the last answer, or all of them, to identify the conversation."""
    answers = [i for i, message in enumerate(messages) if message.get("role") == "assistant"]
    past = messages[: answers[-1] + 1] if answers else messages
    return hashlib.sha256(json.dumps(past, sort_keys=True, default=str).encode()).hexdigest()
