"""Parsing of the updates that people send to a conversation: responses and notes."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.inbox import Approval, InboxItem, Rejection, StateNote
from perdure.agent.loop.scopes import find_key_error, parse_key
from perdure.agent.loop.state import PendingAction, State, actions_to_confirm
from perdure.events.base import Frozen
from perdure.events.nesting import MAX_DEPTH, exceeds_depth
from perdure.events.validation_errors import describe_errors, quote

MAX_NOTE_BYTES = 32 * 1024
"""Size limit of one note."""

MAX_REASON_BYTES = 8 * 1024
"""Size limit of the reason for a rejection."""

Shape = TypeVar("Shape", bound=Frozen)

NO_REASON = "The user did not say why."


class Response(Frozen):
    """Acceptance or rejection of waiting actions: of `calls`, and of all up to slot `through`.

    After a rejection without `run` the agent rests.
    """

    accept: bool
    calls: tuple[str, ...] = ()
    through: int | None = None
    reason: str = ""
    run: bool = True


class Note(Frozen):
    """A title, tags or state to record.

    Keys of `state` that begin with `user:` or `app:` are shared between conversations.
    """

    title: str | None = None
    tags: tuple[str, ...] | None = None
    state: dict[str, Any] | None = None
    versions: dict[str, str] | None = None
    """The versions of shared values that the sender has read: others are not replaced."""

    def items(self, note_id: str) -> Iterator[StateNote]:
        """Yield the inbox items of this note; tags are a change of the spec instead."""
        if self.title is not None:
            yield StateNote(key="title", value=self.title)
        if self.state is not None:
            is_shared = any(parse_key(key).scope != "own" for key in self.state)
            yield StateNote(
                key="state",
                value=self.state,
                versions=self.versions,
                note_id=note_id if is_shared else None,
            )


def bad_request(sentence: str) -> ApplicationError:
    return ApplicationError(sentence, type="BadRequest", non_retryable=True)


def parse_response(sent: Any) -> Response:
    """Parse a response. Raises ApplicationError if it is invalid."""
    response = _parse(Response, sent, "{accept, calls or through, reason}")
    if not response.calls and response.through is None:
        raise bad_request(
            "Name the calls that are meant, or the last seq that was shown as `through`: nothing "
            "is accepted or rejected unseen."
        )
    if len(response.reason.encode()) > MAX_REASON_BYTES:
        raise bad_request(f"A reason has at most {MAX_REASON_BYTES:,} bytes: say it in a message.")
    return response


def resolve_response(
    response: Response, state: State
) -> tuple[InboxItem, tuple[PendingAction, ...]]:
    """Return the inbox item for a response, and its actions. Raises ApplicationError."""
    selected = _select_actions(response, actions_to_confirm(state))
    seqs = tuple(action.seq for action in selected)
    if response.accept:
        return Approval(actions=seqs), selected
    reason = response.reason or NO_REASON
    return Rejection(actions=seqs, reason=reason, run=response.run), selected


def _select_actions(
    response: Response, waiting: Sequence[PendingAction]
) -> tuple[PendingAction, ...]:
    ids = {action.tool_call_id for action in waiting}
    if unknown := [call for call in response.calls if call not in ids]:
        waiting_ids = ", ".join(sorted(ids)) or "none"
        raise bad_request(
            f"No call {quote(unknown[0])} waits for an answer; those that do: {waiting_ids}."
        )
    through = -1 if response.through is None else response.through
    selected = tuple(
        action
        for action in waiting
        if action.tool_call_id in response.calls or action.seq <= through
    )
    if not selected:
        raise bad_request("No action waits for an answer.")
    return selected


def parse_note(sent: Any) -> Note:
    """Parse a note. Raises ApplicationError if it is invalid or too large."""
    note = _parse(Note, sent, "{title}, {tags} or {state}")
    if len(note.model_dump_json().encode()) > MAX_NOTE_BYTES:
        raise bad_request(
            f"A note has at most {MAX_NOTE_BYTES:,} bytes: keep more than that in a file."
        )
    if note == Note():
        raise bad_request("There is nothing to note: send {title}, {tags} or {state}.")
    if exceeds_depth(note.state):
        raise bad_request(
            f"A note is at most {MAX_DEPTH} levels deep: keep more than that in a file."
        )
    if problem := find_key_error(note.state or ()):
        raise bad_request(problem)
    if strays := sorted((note.versions or {}).keys() - (note.state or {}).keys()):
        raise bad_request(f"`versions` names {quote(strays[0])}, and `state` does not.")
    return note


def _parse(kind: type[Shape], sent: Any, shape: str) -> Shape:
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        # Without its cause, which would travel along and may be of any length.
        raise bad_request(f"Send {shape} ({describe_errors(error)}).") from None
