"""The audit of what conversations note and share finds planted violations."""

from typing import Any

import pytest

from examples.bfcl.objects import StoredEvent
from reliability.chaos.audit.log import ViolationKind
from reliability.chaos.audit.memories import check_memories, check_search, parse_memories
from reliability.chaos.audit.state import check_books, check_own_state, parse_books
from reliability.chaos.state_tools import make_mark

LOST, TWICE = ViolationKind.LOST, ViolationKind.TWICE


def call(
    seq: int, tool: str, text: str = "done", state: Any = None, **data: Any
) -> list[StoredEvent]:
    """Return a call in slot `seq` and its answer in the next one."""
    action = {"kind": "ActionEvent", "tool_name": tool, "action": {"data": data}}
    answer = {
        "kind": "ObservationEvent",
        "tool_name": tool,
        "action_id": f"id-of-slot-{seq}",
        "observation": {"is_error": False, "content": [{"text": text}]},
        "state": state,
    }
    return [
        StoredEvent(f"{slot:06d}", slot, f"id-of-slot-{slot}", fields)
        for slot, fields in ((seq, action), (seq + 1, answer))
    ]


def lose(events: list[StoredEvent]) -> list[StoredEvent]:
    """Return a call whose outcome is unknown."""
    [action, answer] = events
    fields = {
        "kind": "AgentErrorEvent",
        "classification": "outcome_unknown",
        "action_id": answer.fields["action_id"],
    }
    return [action, StoredEvent(answer.key, answer.seq, answer.id, fields)]


def mark(seq: int) -> str:
    return make_mark(f"id-of-slot-{seq}")


OWN = [
    *call(0, "state", state={"step": 1}, command="set", key="step", value=1),
    *call(2, "sign", state={"book": [mark(2)]}, scope="own"),
    *call(4, "sign_once", state={"book": [mark(2), mark(4)]}, scope="own"),
    *lose(call(6, "sign", scope="own")),
    *call(8, "state", text="1", command="get", key="step"),
]
VALUES = {"step": 1, "book": [mark(2), mark(4)]}


def test_the_state_is_what_its_successful_calls_made_of_it() -> None:
    assert list(check_own_state(OWN, VALUES)) == []


OWN_HARMS: dict[str, tuple[list[StoredEvent], dict[str, Any]]] = {
    "a call without its change": (
        [*OWN[:2], *call(2, "sign", scope="own"), *OWN[4:]],
        VALUES,
    ),
    "a change that was made twice": (
        [*OWN[:2], *call(2, "sign", state={"book": [mark(2)] * 2}, scope="own"), *OWN[4:]],
        VALUES,
    ),
    "a value that is lost": (OWN, {"step": 1}),
    "a value of a call whose outcome is unknown": (
        OWN,
        {**VALUES, "book": [mark(2), mark(4), mark(6)]},
    ),
    "a value that is not what was set": (
        [*OWN[:8], *call(8, "state", text="2", command="get", key="step")],
        VALUES,
    ),
}


@pytest.mark.parametrize("name", OWN_HARMS)
def test_damage_to_the_state_of_a_conversation_is_found(name: str) -> None:
    assert list(check_own_state(*OWN_HARMS[name]))


BOOK = "user:book-1"
LOGS = {
    "anna": [
        *call(0, "sign", state={BOOK: [mark(0)]}, scope="user"),
        *call(2, "sign", state={BOOK: [mark(0), mark(4), mark(2)]}, scope="user"),
    ],
    "ben": lose(call(4, "sign_once", scope="user")),
}
BOOKS = {BOOK: [mark(0), mark(4), mark(2)]}


def test_a_book_has_the_marks_that_were_acknowledged_and_perhaps_an_unknown_one() -> None:
    assert list(check_books(LOGS, BOOKS)) == []
    assert list(check_books(LOGS, {BOOK: [mark(0), mark(2)]})) == []


BOOK_HARMS: dict[str, tuple[list[str], set[ViolationKind]]] = {
    "an acknowledged mark is lost": ([mark(0), mark(4)], {LOST}),
    "an acknowledged mark is there twice": ([mark(0), mark(2), mark(2)], {TWICE}),
    "an unknown mark is there twice": ([mark(0), mark(4), mark(4), mark(2)], {TWICE}),
    "a mark of nobody": ([mark(0), mark(2), "somebody"], {LOST}),
    "the order of one conversation": ([mark(2), mark(0)], {ViolationKind.REORDERED}),
}


@pytest.mark.parametrize("name", BOOK_HARMS)
def test_damage_to_a_book_is_found(name: str) -> None:
    marks, wrong = BOOK_HARMS[name]
    assert {violation.kind for _, violation in check_books(LOGS, {BOOK: marks})} == wrong


def test_a_call_that_does_not_say_what_it_signed_is_found() -> None:
    logs = {"anna": call(0, "sign", scope="user")}
    assert [violation.kind for _, violation in check_books(logs, {BOOK: [mark(0)]})] == [LOST]


def test_books_are_read_from_their_objects() -> None:
    objects = {
        "users/chaos/state/book-1.json": b'{"value": ["a", "b"], "writes": []}',
        "app/state/book-2.json": b'{"value": null, "writes": []}',
    }
    assert parse_books(objects, "chaos") == {"user:book-1": ["a", "b"], "app:book-2": []}


TEXT = "The word is apple."


def remember(seq: int, text: str = TEXT) -> list[StoredEvent]:
    [action, answer] = call(seq, "remember")
    fields = {**action.fields, "action": {"data": {"text": text}}}
    return [StoredEvent(action.key, action.seq, action.id, fields), answer]


def recall(seq: int, found: str) -> list[StoredEvent]:
    return call(seq, "recall", text=f'<memory id="{found}">', query="apple")


MEMORIES: dict[str, list[StoredEvent]] = {
    "anna": [*remember(0), *recall(2, "id-of-slot-0")],
    "ben": lose(remember(4)),
}
TEXTS = {"id-of-slot-0": [TEXT], "id-of-slot-4": [TEXT]}


def test_memories_that_were_acknowledged_are_there_once_and_found() -> None:
    assert list(check_memories(MEMORIES, TEXTS)) == []
    assert list(check_memories(MEMORIES, {"id-of-slot-0": [TEXT]})) == []


MEMORY_HARMS: dict[str, tuple[dict[str, list[str]], set[ViolationKind]]] = {
    "a lost one": ({}, {LOST}),
    "one of nobody": ({**TEXTS, "id-of-slot-9": [TEXT]}, {LOST}),
    "two versions of one call": (
        {**TEXTS, "id-of-slot-4": [TEXT, TEXT]},
        {ViolationKind.DUPLICATED},
    ),
    "another text": ({"id-of-slot-0": ["The apple."]}, {ViolationKind.DAMAGED}),
}


@pytest.mark.parametrize("name", MEMORY_HARMS)
def test_damage_to_memories_is_found(name: str) -> None:
    texts, wrong = MEMORY_HARMS[name]
    assert {violation.kind for _, violation in check_memories(MEMORIES, texts)} == wrong


def test_a_recall_that_misses_what_was_put_before_is_found() -> None:
    logs = {"anna": [*remember(0), *recall(2, "id-of-slot-4")]}
    [(_, violation)] = check_memories(logs, {"id-of-slot-0": [TEXT]})
    assert violation.kind is LOST


def test_a_search_has_to_find_each_memory_once() -> None:
    assert list(check_search("apple", list(TEXTS), TEXTS)) == []
    assert list(check_search("apple", ["id-of-slot-0"], TEXTS))
    assert list(check_search("apple", [*TEXTS, "id-of-slot-0"], TEXTS))


def test_memories_are_read_from_their_objects() -> None:
    memory_id = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
    objects = {
        f"users/chaos/memory/{memory_id}.000001.json": b'{"text": "one"}',
        f"users/chaos/memory/{memory_id}.000002.json": b'{"text": "two"}',
        "users/chaos/memory/other": b"",
    }
    assert parse_memories(objects) == {memory_id: ["one", "two"]}
