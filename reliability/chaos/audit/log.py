"""The audit of a finished run: the stored events and the effects against the acknowledgements.

It looks at keys and bytes, and not through the program's own reader, so that no mistake of the
program can hide itself; `perdure verify` has its say as well.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from examples.bfcl.objects import StoredEvent
from reliability.chaos.tools import UNREPEATABLE_TOOLS, Effect

Mark = TypeVar("Mark", bound=Hashable)

RESULT_KINDS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


OUTCOME_UNKNOWN_TEXT = ("outcome_unknown", "interrupted")
"""The classification of a call that may or may not have had its effect."""


class ViolationKind(Enum):
    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    TWICE = "executed twice"
    UNFINISHED = "not at its end"
    DAMAGED = "damaged"
    FAILED = "failed"
    EXPOSED = "secret exposed"


@dataclass(frozen=True)
class Violation:
    kind: ViolationKind
    description: str


@dataclass(frozen=True)
class Acknowledgements:
    """The acknowledgements that senders got: message ids by sender, and the slots of messages."""

    message_ids: Mapping[str, Sequence[str]]
    slots: Mapping[str, int]


def audit(
    events: Sequence[StoredEvent], account: Acknowledgements, effects: Sequence[Effect]
) -> Iterator[Violation]:
    """List the violations of one conversation: of its stored events and its effects."""
    yield from check_slots(events)
    yield from check_origins(events)
    yield from check_messages(events, account)
    yield from check_calls(events)
    yield from check_effects(events, effects)
    yield from check_failures(events)


def check_slots(events: Sequence[StoredEvent]) -> Iterator[Violation]:
    held = [event.seq for event in events]
    if not held:
        yield Violation(ViolationKind.LOST, "there is no event at all")
    for seq in sorted(set(range(max(held, default=-1))) - set(held)):
        yield Violation(ViolationKind.LOST, f"slot {seq} is empty, and later ones are not")
    for seq, count in find_repeated(held):
        yield Violation(ViolationKind.DUPLICATED, f"slot {seq} holds {count} objects")


def check_origins(events: Sequence[StoredEvent]) -> Iterator[Violation]:
    origins = (event.fields.get("origin") or {} for event in events)
    marks = (
        (origin.get("run"), origin.get("activity"), origin.get("position", 0)) for origin in origins
    )
    for mark, count in find_repeated(marks):
        yield Violation(ViolationKind.DUPLICATED, f"{count} events say that they are {mark}")


def check_messages(events: Sequence[StoredEvent], account: Acknowledgements) -> Iterator[Violation]:
    findings = [
        (str(event.fields["message_id"]), event.seq)
        for event in events
        if event.kind == "MessageEvent" and event.fields.get("message_id")
    ]
    for message_id, count in find_repeated(message_id for message_id, _ in findings):
        yield Violation(
            ViolationKind.DUPLICATED, f"message {message_id} is on record {count} times"
        )
    where = dict(findings)
    for sender, message_ids in account.message_ids.items():
        for message_id in message_ids:
            if message_id not in where:
                yield Violation(ViolationKind.LOST, f"message {message_id} was acknowledged")
        slots = [where[message_id] for message_id in message_ids if message_id in where]
        if slots != sorted(slots):
            yield Violation(ViolationKind.REORDERED, f"{sender}'s messages are in slots {slots}")
    for message_id, seq in account.slots.items():
        if where.get(message_id, seq) != seq:
            what = f"message {message_id} is in slot {where[message_id]}, acknowledged as {seq}"
            yield Violation(ViolationKind.REORDERED, what)


def check_calls(events: Sequence[StoredEvent]) -> Iterator[Violation]:
    """Check that every action has one result, behind it."""
    answers = [event for event in events if event.kind in RESULT_KINDS]
    counts = Counter(_call_id(answer) for answer in answers)
    actions = {_call_id(event): event for event in events if event.kind == "ActionEvent"}
    for call_id, action in actions.items():
        count = counts[call_id]
        if count != 1:
            wrong = ViolationKind.DUPLICATED if count else ViolationKind.LOST
            yield Violation(wrong, f"call {call_id} (slot {action.seq}) has {count} answers")
    for call_id, count in find_repeated(
        _call_id(item) for item in events if item.kind == "ActionEvent"
    ):
        yield Violation(ViolationKind.DUPLICATED, f"call {call_id} is on record {count} times")
    for answer in answers:
        request = actions.get(_call_id(answer))
        if request is None:
            yield Violation(
                ViolationKind.LOST, f"slot {answer.seq} answers a call that nobody made"
            )
        elif request.seq > answer.seq or answer.fields.get("action_id") != request.id:
            what = f"slot {answer.seq} answers another action, or one that comes later"
            yield Violation(ViolationKind.REORDERED, what)


def check_effects(events: Sequence[StoredEvent], effects: Sequence[Effect]) -> Iterator[Violation]:
    """Check that the effects are those that the log records."""
    once = Counter(effect.action_id for effect in effects if effect.tool in UNREPEATABLE_TOOLS)
    for action_id, count in once.items():
        if count > 1:
            yield Violation(ViolationKind.TWICE, f"action {action_id} has {count} effects outside")
    intended = {event.id for event in events if event.kind == "ActionEvent"}
    done = {effect.action_id for effect in effects}
    for action_id in sorted(done - intended):
        yield Violation(
            ViolationKind.LOST, f"action {action_id} has an effect, and is not on record"
        )
    for event in events:
        ours = event.kind == "ObservationEvent" and event.fields["tool_name"] in (
            *UNREPEATABLE_TOOLS,
            "look",
        )
        if ours and not _is_error(event) and event.fields["action_id"] not in done:
            what = f"slot {event.seq} says it is done, and there is no effect"
            yield Violation(ViolationKind.LOST, what)


def check_failures(events: Sequence[StoredEvent]) -> Iterator[Violation]:
    """List the failures whose cause is not a lost or silent worker."""
    actions = {event.id: event for event in events if event.kind == "ActionEvent"}
    shaken: set[str] = set()
    for event in events:
        if event.kind == "ConversationErrorEvent":
            yield Violation(ViolationKind.FAILED, f"slot {event.seq}: {event.fields.get('detail')}")
        if event.kind == "StuckEvent":
            yield Violation(ViolationKind.FAILED, f"slot {event.seq}: stuck")
        if fault := (event.fields.get("files") or {}).get("fault"):
            yield Violation(ViolationKind.FAILED, f"slot {event.seq}: files are not kept: {fault}")
        path = file_path(actions.get(str(event.fields.get("action_id"))))
        if event.fields.get("classification") in OUTCOME_UNKNOWN_TEXT:
            shaken.add(path)
        # An edit of a file whose making is unknown may rightly find no file.
        elif event.kind == "AgentErrorEvent" and path not in shaken - {""}:
            yield Violation(ViolationKind.FAILED, f"slot {event.seq}: {event.fields.get('error')}")


def file_path(action: StoredEvent | None) -> str:
    """Return the file that an action changes, or an empty string."""
    return str(action.fields["action"].get("path", "")) if action else ""


def expected_files(events: Sequence[StoredEvent]) -> dict[str, str]:
    """Return the expected contents of the files that successful calls wrote."""
    actions = {event.id: event for event in events if event.kind == "ActionEvent"}
    due: dict[str, str] = {}
    for event in events:
        request = actions.get(str(event.fields.get("action_id")))
        path = file_path(request)
        if request is None or not path:
            continue
        action = request.fields["action"]
        if event.kind != "ObservationEvent" or _is_error(event):
            due.pop(path, None)  # nobody knows
        elif action["command"] == "create":
            due[path] = action["file_text"]
        elif path in due:
            due[path] = due[path].replace(action["old_str"], action["new_str"])
    return due


def find_newest_snapshot(events: Sequence[StoredEvent]) -> str | None:
    """Return the key of the newest snapshot."""
    trees = (event.fields.get("files") or {} for event in reversed(events))
    return next((str(item["snapshot"]) for item in trees if item.get("snapshot")), None)


def _call_id(event: StoredEvent) -> str:
    return str(event.fields.get("tool_call_id"))


def _is_error(event: StoredEvent) -> bool:
    return bool((event.fields.get("observation") or {}).get("is_error"))


def find_repeated(marks: Iterable[Mark]) -> list[tuple[Mark, int]]:
    """Return the marks that are there more than once, with their counts."""
    return [(mark, count) for mark, count in Counter(marks).items() if count > 1]
