"""What people ask of a conversation besides talking to it, as they send it."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from agent.inbox import Confirmed, Item, Noted, Rejected
from agent.misfit import misfit, quoted
from agent.scopes import wrong_key
from agent.state import Pending, State, asking
from events.base import Frozen
from events.depth import DEEPEST, is_deeper

MOST_NOTED = 32 * 1024
"""Bytes of one note."""

MOST_REASONED = 8 * 1024
"""Bytes of why actions are rejected."""

Shape = TypeVar("Shape", bound=Frozen)

NO_REASON = "The user did not say why."


class Response(Frozen):
    """Accept or reject waiting actions, named by their call ids, or all up to slot `through`."""

    accept: bool
    calls: tuple[str, ...] = ()
    through: int | None = None
    reason: str = ""


class Note(Frozen):
    """`state` holds values by key; those that begin with `user:` or `app:` are shared."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    state: dict[str, Any] | None = None

    def items(self) -> Iterator[Noted]:
        """What is recorded as a note; tags belong to the spec."""
        if self.title is not None:
            yield Noted(key="title", value=self.title)
        if self.state is not None:
            yield Noted(key="state", value=self.state)


def refusal(sentence: str) -> ApplicationError:
    return ApplicationError(sentence, type="BadRequest", non_retryable=True)


def response_of(sent: Any) -> Response:
    """Raises ApplicationError with a sentence where it is none."""
    response = _read(Response, sent, "{accept, calls or through, reason}")
    if not response.calls and response.through is None:
        raise refusal(
            "Name the calls that are meant, or the last seq that was shown as `through`: nothing "
            "is accepted or rejected unseen."
        )
    if len(response.reason.encode()) > MOST_REASONED:
        raise refusal(f"A reason has at most {MOST_REASONED:,} bytes: say it in a message.")
    return response


def answered(response: Response, state: State) -> tuple[Item, tuple[Pending, ...]]:
    """The item for the inbox, and the actions it is about; raises ApplicationError."""
    meant = _meant(response, asking(state))
    seqs = tuple(one.seq for one in meant)
    if response.accept:
        return Confirmed(actions=seqs), meant
    return Rejected(actions=seqs, reason=response.reason or NO_REASON), meant


def _meant(response: Response, waiting: Sequence[Pending]) -> tuple[Pending, ...]:
    ids = {one.tool_call_id for one in waiting}
    if unknown := [call for call in response.calls if call not in ids]:
        have = ", ".join(sorted(ids)) or "none"
        raise refusal(f"No call {quoted(unknown[0])} waits for an answer; those that do: {have}.")
    through = -1 if response.through is None else response.through
    meant = tuple(
        one for one in waiting if one.tool_call_id in response.calls or one.seq <= through
    )
    if not meant:
        raise refusal("No action waits for an answer.")
    return meant


def noted(sent: Any) -> Note:
    """Raises ApplicationError with a sentence where nothing can be noted."""
    note = _read(Note, sent, "{title}, {tags} or {state}")
    if len(note.model_dump_json().encode()) > MOST_NOTED:
        raise refusal(f"A note has at most {MOST_NOTED:,} bytes: keep more than that in a file.")
    if note == Note():
        raise refusal("There is nothing to note: send {title}, {tags} or {state}.")
    if is_deeper(note.state):
        raise refusal(f"A note is at most {DEEPEST} levels deep: keep more than that in a file.")
    if wrong := wrong_key(note.state or ()):
        raise refusal(wrong)
    return note


def _read(kind: type[Shape], sent: Any, shape: str) -> Shape:
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        # Without its cause, which would travel along and tells every fault at any length.
        raise refusal(f"Send {shape} ({misfit(error)}).") from None
