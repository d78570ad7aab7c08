"""Afterwards: what lies in the store and in the file of effects, against what people were told.

It looks at keys and bytes, and not through the program's own reader, so that no mistake of the
program can hide itself; `perdure verify` has its say as well.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from examples.bfcl.objects import Stored
from tests.chaos.tools import ONCE, Effect

Mark = TypeVar("Mark", bound=Hashable)

ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


TOLD = ("outcome_unknown", "interrupted")
"""How the log owns up to a call that may have had its effect or not."""


class Wrong(Enum):
    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    TWICE = "executed twice"
    UNFINISHED = "not at its end"
    DAMAGED = "damaged"
    FAILED = "failed"


@dataclass(frozen=True)
class Violation:
    wrong: Wrong
    what: str


@dataclass(frozen=True)
class Account:
    """What people know: the ids that were acknowledged, by sender, and the slots they were told."""

    said: Mapping[str, Sequence[str]]
    slots: Mapping[str, int]


def audit(
    events: Sequence[Stored], account: Account, effects: Sequence[Effect]
) -> Iterator[Violation]:
    """What is wrong with one conversation: its stored events, and its effects outside."""
    yield from _slots(events)
    yield from _origins(events)
    yield from _messages(events, account)
    yield from _calls(events)
    yield from _effects(events, effects)
    yield from _failures(events)


def _slots(events: Sequence[Stored]) -> Iterator[Violation]:
    held = [event.seq for event in events]
    if not held:
        yield Violation(Wrong.LOST, "there is no event at all")
    for seq in sorted(set(range(max(held, default=-1))) - set(held)):
        yield Violation(Wrong.LOST, f"slot {seq} is empty, and later ones are not")
    for seq, count in _repeated(held):
        yield Violation(Wrong.DUPLICATED, f"slot {seq} holds {count} objects")


def _origins(events: Sequence[Stored]) -> Iterator[Violation]:
    origins = (event.fields.get("origin") or {} for event in events)
    marks = ((one.get("run"), one.get("activity"), one.get("position", 0)) for one in origins)
    for mark, count in _repeated(marks):
        yield Violation(Wrong.DUPLICATED, f"{count} events say that they are {mark}")


def _messages(events: Sequence[Stored], account: Account) -> Iterator[Violation]:
    found = [
        (str(event.fields["message_id"]), event.seq)
        for event in events
        if event.kind == "MessageEvent" and event.fields.get("message_id")
    ]
    for message_id, count in _repeated(message_id for message_id, _ in found):
        yield Violation(Wrong.DUPLICATED, f"message {message_id} is on record {count} times")
    where = dict(found)
    for sender, said in account.said.items():
        for message_id in said:
            if message_id not in where:
                yield Violation(Wrong.LOST, f"message {message_id} was acknowledged")
        told = [where[message_id] for message_id in said if message_id in where]
        if told != sorted(told):
            yield Violation(Wrong.REORDERED, f"{sender}'s messages are in slots {told}")
    for message_id, seq in account.slots.items():
        if where.get(message_id, seq) != seq:
            what = f"message {message_id} is in slot {where[message_id]}, acknowledged as {seq}"
            yield Violation(Wrong.REORDERED, what)


def _calls(events: Sequence[Stored]) -> Iterator[Violation]:
    """Every action has one answer, and after it."""
    answers = [event for event in events if event.kind in ANSWERS]
    given = Counter(_call_id(answer) for answer in answers)
    actions = {_call_id(event): event for event in events if event.kind == "ActionEvent"}
    for call_id, action in actions.items():
        count = given[call_id]
        if count != 1:
            wrong = Wrong.DUPLICATED if count else Wrong.LOST
            yield Violation(wrong, f"call {call_id} (slot {action.seq}) has {count} answers")
    for call_id, count in _repeated(_call_id(one) for one in events if one.kind == "ActionEvent"):
        yield Violation(Wrong.DUPLICATED, f"call {call_id} is on record {count} times")
    for answer in answers:
        asked = actions.get(_call_id(answer))
        if asked is None:
            yield Violation(Wrong.LOST, f"slot {answer.seq} answers a call that nobody made")
        elif asked.seq > answer.seq or answer.fields.get("action_id") != asked.id:
            what = f"slot {answer.seq} answers another action, or one that comes later"
            yield Violation(Wrong.REORDERED, what)


def _effects(events: Sequence[Stored], effects: Sequence[Effect]) -> Iterator[Violation]:
    """What was done outside is what the log says was done."""
    once = Counter(effect.action_id for effect in effects if effect.tool in ONCE)
    for action_id, count in once.items():
        if count > 1:
            yield Violation(Wrong.TWICE, f"action {action_id} has {count} effects outside")
    intended = {event.id for event in events if event.kind == "ActionEvent"}
    done = {effect.action_id for effect in effects}
    for action_id in sorted(done - intended):
        yield Violation(Wrong.LOST, f"action {action_id} has an effect, and is not on record")
    for event in events:
        ours = event.kind == "ObservationEvent" and event.fields["tool_name"] in (*ONCE, "look")
        if ours and not _is_error(event) and event.fields["action_id"] not in done:
            what = f"slot {event.seq} says it is done, and there is no effect"
            yield Violation(Wrong.LOST, what)


def _failures(events: Sequence[Stored]) -> Iterator[Violation]:
    """What came to nothing for any reason but a call whose worker was lost, or silent."""
    actions = {event.id: event for event in events if event.kind == "ActionEvent"}
    shaken: set[str] = set()
    for event in events:
        if event.kind == "ConversationErrorEvent":
            yield Violation(Wrong.FAILED, f"slot {event.seq}: {event.fields.get('detail')}")
        if event.kind == "StuckEvent":
            yield Violation(Wrong.FAILED, f"slot {event.seq}: stuck")
        if fault := (event.fields.get("files") or {}).get("fault"):
            yield Violation(Wrong.FAILED, f"slot {event.seq}: files are not kept: {fault}")
        path = _path(actions.get(str(event.fields.get("action_id"))))
        if event.fields.get("classification") in TOLD:
            shaken.add(path)
        # An edit of a file whose making is unknown may rightly find no file.
        elif event.kind == "AgentErrorEvent" and path not in shaken - {""}:
            yield Violation(Wrong.FAILED, f"slot {event.seq}: {event.fields.get('error')}")


def _path(action: Stored | None) -> str:
    """The file that an action is about; nothing where it is about none."""
    return str(action.fields["action"].get("path", "")) if action else ""


def due_files(events: Sequence[Stored]) -> dict[str, str]:
    """What the files must hold that were made and changed by calls which were answered as done."""
    actions = {event.id: event for event in events if event.kind == "ActionEvent"}
    due: dict[str, str] = {}
    for event in events:
        asked = actions.get(str(event.fields.get("action_id")))
        path = _path(asked)
        if asked is None or not path:
            continue
        action = asked.fields["action"]
        if event.kind != "ObservationEvent" or _is_error(event):
            due.pop(path, None)  # nobody knows
        elif action["command"] == "create":
            due[path] = action["file_text"]
        elif path in due:
            due[path] = due[path].replace(action["old_str"], action["new_str"])
    return due


def newest_snapshot(events: Sequence[Stored]) -> str | None:
    """The key of the files as they were last."""
    told = (event.fields.get("files") or {} for event in reversed(events))
    return next((str(one["snapshot"]) for one in told if one.get("snapshot")), None)


def _call_id(event: Stored) -> str:
    return str(event.fields.get("tool_call_id"))


def _is_error(event: Stored) -> bool:
    return bool((event.fields.get("observation") or {}).get("is_error"))


def _repeated(marks: Iterable[Mark]) -> list[tuple[Mark, int]]:
    return [(mark, count) for mark, count in Counter(marks).items() if count > 1]
