"""Every event ever written can be read. Golden files are added, never edited.

A golden file holds one object as a log stores it, byte for byte (its keys in natural order: origin,
the fields as declared, usage), and a newline.
"""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from perdure.events.actions import Action
from perdure.events.base import EventBase
from perdure.events.entry import make_entry, parse_entry
from perdure.events.event import Event, UnknownEvent, dump_event, parse_event
from perdure.events.observations import Observation

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "events").glob("*.json"))

golden = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.split(".")[0])


def stored(path: Path) -> bytes:
    return path.read_bytes().removesuffix(b"\n")


def members(union: Any) -> tuple[type[BaseModel], ...]:
    return get_args(get_args(union)[0])


def kind_of(model: type[BaseModel]) -> str:
    return str(model.model_fields["kind"].default)


@golden
def test_a_stored_event_is_rewritten_byte_for_byte(path: Path) -> None:
    held = parse_entry(3, stored(path))
    assert not isinstance(held.event, UnknownEvent)
    assert make_entry(3, held.event, held.origin, held.usage).body == stored(path)


@golden
def test_an_event_reads_and_writes_as_it_did(path: Path) -> None:
    fields = json.loads(stored(path))
    fields.pop("origin")
    fields.pop("usage", None)
    assert json.dumps(dump_event(parse_event(fields))) == json.dumps(fields)


@golden
def test_a_golden_file_is_named_after_its_kind(path: Path) -> None:
    kind = parse_entry(0, stored(path)).event.kind
    assert path.name.split(".")[0].split("-")[0] == kind


def test_every_kind_of_event_has_a_golden_file() -> None:
    kinds = {kind_of(model) for model in members(Event)}
    assert kinds == {parse_entry(0, stored(path)).event.kind for path in GOLDEN}


def test_every_kind_of_action_and_observation_has_a_golden_file() -> None:
    events = [json.loads(stored(path)) for path in GOLDEN]
    deeds = [event[part]["kind"] for event in events for part in PARTS if part in event]
    assert set(deeds) == {kind_of(model) for model in (*members(Action), *members(Observation))}


PARTS = ("action", "observation")


@pytest.mark.parametrize("model", members(Event), ids=kind_of)
def test_the_golden_files_of_a_kind_use_every_field_it_has(model: type[EventBase]) -> None:
    mine = [json.loads(stored(path)) for path in GOLDEN if path.name.startswith(kind_of(model))]
    used = {name for event in mine if event["kind"] == kind_of(model) for name in event}
    assert set(model.model_fields) == used - {"origin", "usage"}
