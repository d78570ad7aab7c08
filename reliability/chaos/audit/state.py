"""The audit of the session state: the conversation's own values, and those that it shares."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from examples.bfcl.objects import Objects, StoredEvent
from perdure.storage.keys import APP_STATE, user_state_prefix
from reliability.chaos.audit.calls import (
    AnsweredCall,
    answered_calls,
    list_actions,
    successful_calls,
)
from reliability.chaos.audit.log import Violation, ViolationKind
from reliability.chaos.state_tools import OWN_BOOK, SIGNING_TOOLS, is_own, make_mark

Books = Mapping[str, Sequence[str]]
"""The marks of each book that conversations share, by its key, in their order."""


def check_own_state(
    events: Sequence[StoredEvent], values: Mapping[str, Any]
) -> Iterator[Violation]:
    """Check that each successful call changed the state once, and that `values` is the result."""
    state: dict[str, Any] = {}
    for call in answered_calls(events, "state", *SIGNING_TOOLS):
        due = find_due_change(call, state)
        recorded = call.answer.fields.get("state") or {}
        own = {key: value for key, value in recorded.items() if is_own(key)}
        if own != due:
            what = f"slot {call.answer.seq} changes {own}, and the call {due}"
            yield Violation(ViolationKind.LOST, what)
        state |= due
        if call.succeeded and call.arguments.get("command") == "get":
            yield from _check_get(call, state)
    if dict(values) != state:
        yield Violation(ViolationKind.LOST, f"the state is {values}, and by its calls {state}")


def find_due_change(call: AnsweredCall, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call has to change of its conversation's own state; nothing if it failed."""
    arguments = call.arguments
    if not call.succeeded:
        return {}
    if arguments.get("command") == "set":
        return {arguments["key"]: arguments["value"]}
    if arguments.get("scope") == "own":
        return {OWN_BOOK: [*state.get(OWN_BOOK, []), make_mark(call.action.id)]}
    return {}


def _check_get(call: AnsweredCall, state: Mapping[str, Any]) -> Iterator[Violation]:
    key = call.arguments["key"]
    due = json.dumps(state[key]) if key in state else "There is no such value."
    if call.text != due:
        what = f"slot {call.answer.seq} says that {key} is {call.text}, and it is {due}"
        yield Violation(ViolationKind.DAMAGED, what)


def check_books(
    logs: Mapping[str, Sequence[StoredEvent]], books: Books
) -> Iterator[tuple[str, Violation]]:
    """Check the shared books against the calls in all logs, by the id of the conversation.

    A mark of a call that is acknowledged is there once, one of another call once at most.
    """
    asked: set[str] = set()
    for conversation_id, events in logs.items():
        asked |= {make_mark(action.id) for action in list_actions(events, *SIGNING_TOOLS)}
        for violation in _check_marks(events, books):
            yield conversation_id, violation
    for key, marks in books.items():
        for mark, count in Counter(marks).items():
            if count > 1:
                yield key, Violation(ViolationKind.TWICE, f"{mark} is there {count} times")
            if mark not in asked:
                yield key, Violation(ViolationKind.LOST, f"nobody is on record for {mark}")


def _check_marks(events: Sequence[StoredEvent], books: Books) -> Iterator[Violation]:
    last: dict[str, int] = {}
    for call in successful_calls(events, *SIGNING_TOOLS):
        if call.arguments["scope"] == "own":
            continue
        mark = make_mark(call.action.id)
        changes = call.answer.fields.get("state") or {}
        if [list(marks).count(mark) for marks in changes.values()] != [1]:
            yield Violation(ViolationKind.LOST, f"slot {call.answer.seq} does not say it signed")
        for key in changes:
            marks = list(books.get(key, ()))
            if mark not in marks:
                what = f"slot {call.answer.seq} says that it signed {key}, which it has not"
                yield Violation(ViolationKind.LOST, what)
                continue
            if marks.index(mark) < last.get(key, 0):
                what = f"slot {call.answer.seq} signed {key} before an earlier call"
                yield Violation(ViolationKind.REORDERED, what)
            last[key] = marks.index(mark)


def parse_books(objects: Objects, user_id: str) -> dict[str, list[str]]:
    """Return the books in the objects of shared values, by key."""
    books = {}
    for prefix, scope in ((user_state_prefix(user_id), "user:"), (APP_STATE, "app:")):
        for key, body in objects.items():
            if key.startswith(prefix):
                name = key.removeprefix(prefix).removesuffix(".json")
                books[f"{scope}{name}"] = list(json.loads(body)["value"] or [])
    return books
