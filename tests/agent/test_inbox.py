import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.inbox import (
    MAX_MESSAGE,
    CloseAsked,
    CondenseAsked,
    Configured,
    ConfirmationAsked,
    Confirmed,
    Failed,
    FoundStuck,
    InterruptAsked,
    Item,
    Noted,
    Nudged,
    PauseAsked,
    Refused,
    Rejected,
    ResumeAsked,
    Said,
    fault,
    weight,
)


@pytest.mark.parametrize("text", ["", " ", "\n\t  \n", "\u2003"])
def test_a_message_says_something(text: str) -> None:
    assert fault(Said(text=text)) == "The message is empty: say what the agent should do."


@pytest.mark.parametrize("character", ["x", '"', "\\", "\n", "é", "失", "🙈", "\x00"])
def test_a_message_has_a_size_in_bytes_of_json(character: str) -> None:
    bytes_each = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    room = MAX_MESSAGE - weight(Said(text="x"))
    fits = "x" + character * (room // bytes_each)
    assert fault(Said(text=fits)) is None
    told = fault(Said(text=fits + character * 2))
    assert told is not None
    assert "the limit is 98,304: put the text in a file of the workspace" in told


def test_a_sender_takes_room_too() -> None:
    told = fault(Said(text="hi", sender="s" * MAX_MESSAGE))
    assert told is not None
    assert "bytes and the limit is" in told


@pytest.mark.parametrize("message_id", [None, "m", "m" * 128, "urn:uuid:1/2?a=b&c={~}", "turn 1"])
def test_an_id_that_can_be_remembered_is_taken(message_id: str | None) -> None:
    assert fault(Said(text="hi", message_id=message_id)) is None


@pytest.mark.parametrize("message_id", ["", "m" * 129, "é", "a\nb", 'a"b', "a\\b", "m\n", "\x7f"])
def test_an_id_that_cannot_be_remembered_is_refused(message_id: str) -> None:
    told = fault(Said(text="hi", message_id=message_id))
    assert told == "A message_id has 1 to 128 ASCII characters, without quotes and backslashes."


PICTURE = "data:image/png;base64,iVBORw0KGgo="


def test_a_picture_says_enough() -> None:
    for image in (PICTURE, "https://example.org/door.png?size=2", "http://example.org/a"):
        assert fault(Said(text="", images=(image,))) is None
        assert fault(Said(text="Look:", images=(image, PICTURE))) is None


@pytest.mark.parametrize(
    "image",
    [
        "",
        "door.png",
        "/etc/passwd",
        "file:///etc/passwd",
        "ftp://example.org/a.png",
        "data:text/html;base64,PGI+",
        "data:image/png,raw",
        "data:image/png;base64,",
        "data:image/png;base64,a b",
        "https://example.org/a b",
        f"{PICTURE}\n",
    ],
)
def test_an_image_is_an_address_or_the_image_itself(image: str) -> None:
    told = fault(Said(text="Look:", images=(PICTURE, image)))
    assert told is not None
    assert told.startswith("An image is an http address, or data:image")


def test_a_picture_takes_room_too() -> None:
    told = fault(Said(text="", images=("data:image/png;base64," + "A" * MAX_MESSAGE,)))
    assert told is not None
    assert "bytes and the limit is" in told


@pytest.mark.parametrize(
    "half",
    [
        {"text": "a\ud800"},
        {"text": "a", "sender": "\udfff"},
        {"text": "a", "images": ("https://example.org/\ud800",)},
    ],
)
def test_half_a_character_is_refused(half: dict[str, Any]) -> None:
    told = fault(Said(**half))
    assert told == "The message holds half a surrogate pair: send the whole character, or none."


@given(st.text(), st.none() | st.text(), st.none() | st.text())
def test_what_has_no_fault_can_be_written(
    text: str, message_id: str | None, sender: str | None
) -> None:
    said = Said(text=text, message_id=message_id, sender=sender)
    if fault(said) is None:
        assert weight(said) <= MAX_MESSAGE
        assert len(json.dumps(message_id)) <= 130
        assert Said.model_validate_json(said.model_dump_json()) == said


ITEMS: list[Item] = [
    Said(text="失敗 🙈", message_id="m", sender="ada", images=(PICTURE,)),
    PauseAsked(),
    ResumeAsked(),
    InterruptAsked(),
    CondenseAsked(),
    CloseAsked(),
    Confirmed(actions=(4, 5)),
    Rejected(actions=(4,), reason="Not on a Friday."),
    Configured(changes={"limits": {"max_budget": 1.5}}),
    Noted(key="title", value="Doors"),
    Failed(code="auth", detail="Set a key."),
    Refused(detail="Too long."),
    Nudged(topic="limits", text="Two answers are left."),
    FoundStuck(pattern="monologue", first_seq=3, last_seq=9, count=3),
    ConfirmationAsked(actions=(4,)),
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_the_weight_of_an_item_is_its_size_as_json(item: Item) -> None:
    fields = item.model_dump()
    assert weight(item) == len(
        json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    )


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_an_item_travels_by_its_kind(item: Item) -> None:
    inbox = TypeAdapter(Item)
    assert inbox.validate_json(item.model_dump_json()) == item


def test_there_is_an_example_of_every_item() -> None:
    assert {type(item) for item in ITEMS} == set(get_args(get_args(Item)[0]))
