import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from perdure.agent.loop.inbox import (
    MAX_MESSAGE_BYTES,
    AgentWarning,
    Answer,
    Approval,
    CloseRequest,
    CondenseRequest,
    ConfirmationRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    RefusedInput,
    Rejection,
    ResumeRequest,
    Signal,
    SpecChange,
    StateNote,
    StuckFinding,
    TurnFailure,
    UserMessage,
    WaitEnd,
    WaitStart,
    WebhookFailure,
    find_message_error,
    json_size,
)


@pytest.mark.parametrize("text", ["", " ", "\n\t  \n", "\u2003"])
def test_an_empty_message_is_refused(text: str) -> None:
    assert (
        find_message_error(UserMessage(text=text))
        == "The message is empty: say what the agent should do."
    )


@pytest.mark.parametrize("character", ["x", '"', "\\", "\n", "é", "失", "🙈", "\x00"])
def test_a_message_has_a_size_in_bytes_of_json(character: str) -> None:
    bytes_each = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    room = MAX_MESSAGE_BYTES - json_size(UserMessage(text="x"))
    fits = "x" + character * (room // bytes_each)
    assert find_message_error(UserMessage(text=fits)) is None
    error = find_message_error(UserMessage(text=fits + character * 2))
    assert error is not None
    assert "the limit is 98,304: put the text in a file of the workspace" in error


def test_a_sender_takes_room_too() -> None:
    error = find_message_error(UserMessage(text="hi", sender="s" * MAX_MESSAGE_BYTES))
    assert error is not None
    assert "bytes and the limit is" in error


@pytest.mark.parametrize("message_id", [None, "m", "m" * 128, "urn:uuid:1/2?a=b&c={~}", "turn 1"])
def test_an_id_that_can_be_remembered_is_taken(message_id: str | None) -> None:
    assert find_message_error(UserMessage(text="hi", message_id=message_id)) is None


@pytest.mark.parametrize("message_id", ["", "m" * 129, "é", "a\nb", 'a"b', "a\\b", "m\n", "\x7f"])
def test_an_id_that_cannot_be_remembered_is_refused(message_id: str) -> None:
    error = find_message_error(UserMessage(text="hi", message_id=message_id))
    assert error == "A message_id has 1 to 128 ASCII characters, without quotes and backslashes."


PICTURE = "data:image/png;base64,iVBORw0KGgo="


def test_a_message_may_be_an_image_only() -> None:
    for image in (PICTURE, "https://example.org/door.png?size=2", "http://example.org/a"):
        assert find_message_error(UserMessage(text="", images=(image,))) is None
        assert find_message_error(UserMessage(text="Look:", images=(image, PICTURE))) is None


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
    error = find_message_error(UserMessage(text="Look:", images=(PICTURE, image)))
    assert error is not None
    assert error.startswith("An image is an http address, or data:image")


def test_a_picture_takes_room_too() -> None:
    error = find_message_error(
        UserMessage(text="", images=("data:image/png;base64," + "A" * MAX_MESSAGE_BYTES,))
    )
    assert error is not None
    assert "bytes and the limit is" in error


@pytest.mark.parametrize(
    "half",
    [
        {"text": "a\ud800"},
        {"text": "a", "sender": "\udfff"},
        {"text": "a", "images": ("https://example.org/\ud800",)},
    ],
)
def test_half_a_character_is_refused(half: dict[str, Any]) -> None:
    error = find_message_error(UserMessage(**half))
    assert error == "The message holds half a surrogate pair: send the whole character, or none."


@given(st.text(), st.none() | st.text(), st.none() | st.text())
def test_a_valid_message_can_be_written(
    text: str, message_id: str | None, sender: str | None
) -> None:
    message = UserMessage(text=text, message_id=message_id, sender=sender)
    if find_message_error(message) is None:
        assert json_size(message) <= MAX_MESSAGE_BYTES
        assert len(json.dumps(message_id)) <= 130
        assert UserMessage.model_validate_json(message.model_dump_json()) == message


ITEMS: list[InboxItem] = [
    UserMessage(text="失敗 🙈", message_id="m", sender="ada", images=(PICTURE,)),
    PauseRequest(),
    ResumeRequest(),
    InterruptRequest(),
    CondenseRequest(),
    CloseRequest(),
    Approval(actions=(4, 5)),
    Rejection(actions=(4,), reason="Not on a Friday."),
    SpecChange(changes={"limits": {"max_budget": 1.5}}),
    StateNote(key="title", value="Doors"),
    TurnFailure(code="auth", detail="Set a key."),
    RefusedInput(detail="Too long."),
    WebhookFailure(webhook_id="1f", event="turn_end", event_id="e", reason="It said 500."),
    AgentWarning(topic="limits", text="Two answers are left."),
    StuckFinding(pattern="monologue", first_seq=3, last_seq=9, count=3),
    ConfirmationRequest(actions=(4,)),
    Signal(name="paid", data={"amount": [12, None]}, signal_id="invoice-7"),
    Answer(action=4, text="Blue."),
    WaitStart(action=4),
    WaitEnd(action=4, ended_by="signal", signal_seq=7),
]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_the_weight_of_an_item_is_its_size_as_json(item: InboxItem) -> None:
    fields = item.model_dump()
    assert json_size(item) == len(
        json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    )


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_an_item_travels_by_its_kind(item: InboxItem) -> None:
    inbox = TypeAdapter(InboxItem)
    assert inbox.validate_json(item.model_dump_json()) == item


def test_there_is_an_example_of_every_item() -> None:
    assert {type(item) for item in ITEMS} == set(get_args(get_args(InboxItem)[0]))


def test_images_that_make_a_message_too_long_are_to_be_stored() -> None:
    image = "data:image/png;base64," + "A" * 100_000
    error = find_message_error(UserMessage(text="Look.", images=(image,)))
    assert error is not None
    assert "send its images by the client" in error
    stored = UserMessage(text="Look.", images=(f"blobs/{'0a' * 32}",) * 20)
    assert find_message_error(stored) is None
