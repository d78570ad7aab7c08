import json
from typing import Any

import pytest
from pydantic import ValidationError

from perdure.events.actions import MCPToolAction
from perdure.events.content import TextContent
from perdure.events.control import PauseEvent
from perdure.events.entry import make_entry, parse_entry
from perdure.events.event import UnknownEvent, dump_event, parse_event
from perdure.events.tools import ActionEvent
from perdure.events.usage import Usage
from tests.builders import ORIGIN, TIMESTAMP, action, entries, id_of, user

NEWER: dict[str, dict[str, Any]] = {
    "a kind that is new": {"kind": "DreamEvent", "sheep": [1, None, {"electric": None}]},
    "a field that is new": {"kind": "PauseEvent", "until": None},
    "a deep field that is new": {
        "kind": "MessageEvent",
        "llm_message": {"role": "user", "content": [{"type": "text", "text": "hi", "loud": 1}]},
    },
    "an action that is new": {
        **dump_event(action()),
        "action": {"kind": "BrowseAction", "url": "https://example.org", "tab": None},
    },
    "no kind at all": {"tool_call_id": "call_1"},
    "a timestamp of another width": {"kind": "PauseEvent", "timestamp": "2026-03-01T09:00:00Z"},
}


def fields(newer: dict[str, Any]) -> dict[str, Any]:
    return {"id": id_of(4), "timestamp": TIMESTAMP, "source": "user", **newer}


newer = pytest.mark.parametrize("newer", NEWER.values(), ids=NEWER)


@newer
def test_an_event_of_a_newer_writer_is_kept_unchanged(newer: dict[str, Any]) -> None:
    event = parse_event(fields(newer))
    assert isinstance(event, UnknownEvent)
    assert json.dumps(dump_event(event)) == json.dumps(fields(newer))


@newer
def test_an_event_of_a_newer_writer_is_rewritten_byte_for_byte(newer: dict[str, Any]) -> None:
    written = {"origin": ORIGIN.model_dump(), **fields(newer), "usage": {"cost": 0.5}}
    body = json.dumps(written, separators=(",", ":")).encode()
    held = parse_entry(4, body)
    assert make_entry(4, held.event, held.origin, held.usage).body == body


def test_an_unknown_event_still_tells_what_it_is() -> None:
    event = parse_event(fields({"kind": "DreamEvent"}))
    assert (event.kind, event.id, event.source) == ("DreamEvent", id_of(4), "user")
    assert event.timestamp == TIMESTAMP


def test_an_entry_holds_an_unknown_event_as_such() -> None:
    [held] = entries([parse_event(fields({"kind": "PauseEvent", "until": None}))])
    assert isinstance(held.event, UnknownEvent)
    assert isinstance(parse_entry(0, held.body).event, UnknownEvent)


def test_null_in_the_arguments_of_a_tool_is_an_argument() -> None:
    arguments = {"a": None, "b": [None, {"c": None}]}
    event = parse_event(dump_event(action(arguments=json.dumps(arguments))))
    assert isinstance(event, ActionEvent)
    assert isinstance(event.action, MCPToolAction)
    assert event.action.data == arguments


def test_absent_fields_are_not_written() -> None:
    assert None not in dump_event(user()).values()


@pytest.mark.parametrize(
    "timestamp",
    [
        "2026-03-01T09:00:00",
        "2026-03-01T09:00:00.000",
        "2026-03-01T09:00:00.0000000",
        "2026-03-01T09:00:00.000000Z",
        "2026-03-01T09:00:00.000000\n",
        "2026-03-01 09:00:00.000000",
        "٢٠٢٦-03-01T09:00:00.000000",
        "",
    ],
)
def test_a_timestamp_has_one_width_only(timestamp: str) -> None:
    with pytest.raises(ValidationError, match="timestamp"):
        PauseEvent(timestamp=timestamp)


def test_events_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        PauseEvent(timestamp=TIMESTAMP).id = "another"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        parse_event({"kind": "DreamEvent"}).kind = "PauseEvent"  # type: ignore[misc]


def test_a_field_that_nobody_declared_is_a_mistake() -> None:
    with pytest.raises(ValidationError, match="extra"):
        TextContent.model_validate({"text": "hi", "txet": "hi"})
    with pytest.raises(ValidationError, match="extra"):
        PauseEvent.model_validate({"timestamp": TIMESTAMP, "until": "noon"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'"text"',
        b'{"kind":"PauseEvent"}',
        b'{"kind":"PauseEvent","origin":{"run":"r"}}',
        b'{"kind":"PauseEvent","origin":{"run":"r","activity":"a"},"usage":{"cost":"much"}}',
    ],
)
def test_a_damaged_object_is_not_read(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_entry(0, body)


def test_usage_rides_along_without_its_zeros() -> None:
    usage = Usage(prompt_tokens=12, cost=0.25)
    body = make_entry(0, user(), ORIGIN, usage).body
    assert json.loads(body)["usage"] == {"prompt_tokens": 12, "cost": 0.25}
    assert parse_entry(0, body).usage == usage
    assert parse_entry(0, make_entry(0, user(), ORIGIN).body).usage is None


def test_usage_of_nothing_is_still_usage() -> None:
    assert parse_entry(0, make_entry(0, user(), ORIGIN, Usage()).body).usage == Usage()


def test_the_sha_is_that_of_the_stored_bytes() -> None:
    [entry], [same], [other] = entries([user()]), entries([user()]), entries([user("Stop.")])
    assert len(entry.sha) == 32
    assert entry.sha == same.sha != other.sha
    assert parse_entry(0, entry.body).sha == entry.sha


def test_half_a_character_becomes_a_question_mark_before_it_is_stored() -> None:
    made = make_entry(0, user("a\ud800b"), ORIGIN)
    assert made == parse_entry(0, made.body)
    assert made == make_entry(0, user("a?b"), ORIGIN)
