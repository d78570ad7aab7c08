"""Checks that the stored objects of a conversation are a complete log without duplicates.

It looks at keys and bytes only, and works out the ids again, so that no mistake of the program can
hide itself. Every failure is a sentence; no failures is an empty list.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID, uuid5

from examples.bfcl.objects import NAME, Objects, StoredEvent, parse_objects

Mark = TypeVar("Mark", bound=Hashable)

ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


def audit(conversation_id: str, objects: Objects) -> list[str]:
    """Find what is wrong with the log in these objects."""
    events = parse_objects(objects)
    return [
        *_names(objects),
        *check_slots(events),
        *check_ids(UUID(conversation_id), events),
        *check_origins(events),
        *check_calls(events),
        *check_messages(events),
    ]


def _names(objects: Objects) -> Iterator[str]:
    for key in objects:
        if "/events/" in key and not NAME.search(key):
            yield f"{key} is not the name of an event object."


def check_slots(events: Sequence[StoredEvent]) -> Iterator[str]:
    held = Counter(event.seq for event in events)
    if not held:
        yield "There is no event object at all."
    for seq in range(max(held, default=-1)):
        if seq not in held:
            yield f"Slot {seq} is empty, and later slots are not."
    for seq, count in held.items():
        if count > 1:
            yield f"Slot {seq} holds {count} objects."


def check_ids(conversation_id: UUID, events: Iterable[StoredEvent]) -> Iterator[str]:
    for event in events:
        due = str(uuid5(conversation_id, str(event.seq)))
        if event.id != due:
            yield f"The key of slot {event.seq} has the id {event.id}, which should be {due}."
        if event.fields.get("id") != due:
            yield f"The body of slot {event.seq} has the id {event.fields.get('id')}, not {due}."


def check_origins(events: Iterable[StoredEvent]) -> Iterator[str]:
    origins = (event.fields.get("origin") or {} for event in events)
    marks = ((o.get("run"), o.get("activity"), o.get("position", 0)) for o in origins)
    for (run, activity, position), count in _repeated(marks):
        yield f"{count} events say that activity {activity} of run {run} wrote them ({position})."


def check_calls(events: Sequence[StoredEvent]) -> Iterator[str]:
    made = [event for event in events if event.kind == "ActionEvent"]
    answers = [event for event in events if event.kind in ANSWERS]
    for call_id, count in _repeated(map(_call_id, made)):
        yield f"Tool call {call_id} is on record {count} times."
    counts = Counter(map(_call_id, answers))
    actions = {_call_id(action): action for action in made}
    for call_id, action in actions.items():
        if counts[call_id] != 1:
            yield f"Tool call {call_id} (slot {action.seq}) has {counts[call_id]} answers, not 1."
    for answer in answers:
        yield from _answer(answer, actions.get(_call_id(answer)))


def _answer(answer: StoredEvent, action: StoredEvent | None) -> Iterator[str]:
    call_id = _call_id(answer)
    # A call that could not be read is refused along with the answer that made it, without an id.
    action_id = answer.fields.get("action_id")
    if action is None:
        yield f"Slot {answer.seq} answers the tool call {call_id}, which nobody made."
    elif action_id not in (None, action.id):
        yield f"Slot {answer.seq} answers {call_id} and points at {action_id}, another's action."
    elif action.seq > answer.seq:
        yield f"Slot {answer.seq} answers a tool call that was made later, in slot {action.seq}."


def _call_id(event: StoredEvent) -> str:
    return str(event.fields.get("tool_call_id"))


def check_messages(events: Iterable[StoredEvent]) -> Iterator[str]:
    ids = (event.fields.get("message_id") for event in events if event.kind == "MessageEvent")
    for message_id, count in _repeated(identifier for identifier in ids if identifier):
        yield f"Message {message_id} is on record {count} times."


def _repeated(marks: Iterable[Mark]) -> list[tuple[Mark, int]]:
    return [(mark, count) for mark, count in Counter(marks).items() if count > 1]
