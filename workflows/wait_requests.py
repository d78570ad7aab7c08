"""Parsing of what people and programs send to a conversation that waits: signals and answers."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from perdure.agent.loop.inbox import (
    Answer,
    InboxItem,
    RefusedInput,
    Signal,
    UserMessage,
    find_message_error,
)
from perdure.agent.loop.signals import find_signal_error
from perdure.agent.loop.state import State
from perdure.agent.loop.wait import MAX_KEPT_SIGNALS, Wait, remembered_name
from perdure.agent.loop.wait_steps import find_waiting_action
from perdure.events.base import Frozen
from perdure.events.validation_errors import describe_errors, quote
from perdure.workflows.requests import bad_request

MAX_ANSWER_BYTES = 32 * 1024

SIGNAL_SHAPE = "{name, data, signal_id}"


class SentSignal(Frozen):
    """A signal as somebody sends it."""

    name: str
    data: JsonValue = None
    signal_id: str | None = None


class SentAnswer(Frozen):
    """An answer as somebody sends it: one of the choices, or a text in one's own words.

    Without `call` it is to the question that waits now.
    """

    call: str | None = None
    choice: str | None = None
    text: str | None = Field(default=None, min_length=1)


def parse_signal(sent: Any, new_id: str) -> Signal:
    """Parse a signal; without an id of the sender's it has `new_id`. Raises ApplicationError."""
    parsed = to_signal(sent, new_id)
    if isinstance(parsed, RefusedInput):
        raise bad_request(parsed.detail)
    return parsed


def to_signal(sent: Any, new_id: str) -> Signal | RefusedInput:
    """Parse a signal for the inbox: the log says what is wrong with one that is invalid."""
    try:
        parsed = SentSignal.model_validate({"name": sent} if isinstance(sent, str) else sent)
    except ValidationError as error:
        return RefusedInput(detail=f"Send {SIGNAL_SHAPE} ({describe_errors(error)}).")
    signal = Signal(name=parsed.name, data=parsed.data, signal_id=parsed.signal_id or new_id)
    problem = find_signal_error(signal)
    return signal if problem is None else RefusedInput(detail=problem)


def is_repeated(signal: Signal, state: State, inbox: Sequence[InboxItem]) -> bool:
    """Tell whether the log, or the inbox, has a signal of the same id."""
    waiting = (item.signal_id for item in inbox if isinstance(item, Signal))
    return remembered_name(signal.signal_id) in state.message_seqs or signal.signal_id in waiting


def find_excess(signal: Signal, state: State, inbox: Sequence[InboxItem]) -> str | None:
    """Return a sentence if no further signal can be kept; one that is waited for always can."""
    waiting = [item.name for item in inbox if isinstance(item, Signal)]
    names = [*(kept.name for kept in state.signals), *waiting]
    is_first = is_awaited(signal, state.wait) and signal.name not in names
    if len(names) < MAX_KEPT_SIGNALS or is_first:
        return None
    return (
        f"The conversation keeps {MAX_KEPT_SIGNALS} signals already that no agent has waited for: "
        f"send {quote(signal.name)} once one does."
    )


def is_awaited(signal: Signal, wait: Wait | None) -> bool:
    return wait is not None and wait.signal == signal.name


def parse_answer(sent: Any) -> SentAnswer:
    """Parse an answer. Raises ApplicationError if it is invalid or too large."""
    try:
        answer = SentAnswer.model_validate({"text": sent} if isinstance(sent, str) else sent)
    except ValidationError as error:
        raise bad_request(f"Send {{choice}} or {{text}} ({describe_errors(error)}).") from None
    if (answer.choice is None) == (answer.text is None):
        raise bad_request("Answer by `choice`, one of the question's, or by `text`, and not both.")
    text = answer.text or answer.choice or ""
    if problem := find_message_error(UserMessage(text=text)):
        raise bad_request(problem.replace("The message", "The answer", 1))
    if len(text.encode()) > MAX_ANSWER_BYTES:
        raise bad_request(
            f"An answer has at most {MAX_ANSWER_BYTES:,} bytes: say more in a message."
        )
    return answer


def resolve_answer(sent: SentAnswer, state: State, inbox: Sequence[InboxItem]) -> Answer:
    """Return the inbox item of an answer to the question that waits. Raises ApplicationError."""
    action, wait = find_waiting_action(state), state.wait
    answered = {item.action for item in inbox if isinstance(item, Answer)}
    if action is None or wait is None or wait.question is None or action.seq in answered:
        raise bad_request("No question waits for an answer: send a message instead.")
    if sent.call not in (None, wait.tool_call_id):
        raise bad_request(
            f"No question {quote(sent.call or '')} waits for an answer; the one that does is "
            f"{quote(wait.tool_call_id)}."
        )
    if sent.choice is not None and sent.choice not in wait.choices:
        choices = ", ".join(map(quote, wait.choices)) or "none"
        raise bad_request(
            f"{quote(sent.choice)} is none of the choices ({choices}): name one, or send `text`."
        )
    return Answer(action=action.seq, text=sent.choice or sent.text or "")
