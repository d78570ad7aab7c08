"""The history that a chat sends, and the messages that a request has."""

import pytest

from perdure.gateway.openai.chats import match_history
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.openai.metadata import from_tags, merge_tags, to_tags
from perdure.gateway.openai.requests import (
    InputItem,
    SpokenMessage,
    compose,
    parse_input,
)


def spoken(*texts: str) -> list[SpokenMessage]:
    """Return messages: `:` stands before those of the assistant."""
    return [
        SpokenMessage("assistant" if text.startswith(":") else "user", text.removeprefix(":"))
        for text in texts
    ]


TRANSCRIPT = compose(spoken("Old.", ":Yes.", "One?"))[0]

CASES: dict[str, tuple[list[str], list[str], int, list[str]]] = {
    "nothing is known": (["One?"], [], 0, ["One?"]),
    "it goes on": (["One?", ":1.", "Two?"], ["One?"], 1, ["Two?"]),
    "spaces do not count": ([" One?\n", ":1.", "Two?"], ["One?"], 1, ["Two?"]),
    "the newest is made again": (["One?", ":1.", "Two?"], ["One?", "Two?"], 1, ["Two?"]),
    "the first is made again": (["One?"], ["One?"], 0, ["One?"]),
    "an earlier one was changed": (["Uno?", ":1.", "Two?"], ["One?"], 0, ["Uno?", ":1.", "Two?"]),
    "a middle one was changed": (
        *(["One?", ":1.", "Dos?", ":2.", "Three?"], ["One?", "Two?", "Three?"]),
        *(1, ["Dos?", ":2.", "Three?"]),
    ),
    "the log lacks some": (
        *(["One?", ":1.", "Two?", ":2.", "Three?"], ["One?"], 1, ["Two?", ":2.", "Three?"]),
    ),
    "it has begun elsewhere": (
        ["Old.", ":Yes.", "One?", ":1.", "Two?"],
        *([TRANSCRIPT], 1, ["Two?"]),
    ),
    "a secret is masked in the log": (["Key x", ":Ok.", "Two?"], ["Key <secret:X>"], 1, ["Two?"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_history_is_matched_with_what_the_log_has(name: str) -> None:
    sent, known, count, rest = CASES[name]
    assert match_history(spoken(*sent), known) == (count, spoken(*rest))


def test_instructions_approvals_and_messages_are_told_apart() -> None:
    items = [
        InputItem(role="system", content="Be brief."),
        InputItem(role="developer", content="Be kind."),
        InputItem(type="reasoning"),
        InputItem(role="user", content="Hello?"),
        InputItem(type="mcp_approval_response", approval_request_id="mcpr_1", approve=False),
    ]
    said = parse_input(items)
    assert said.instructions == "Be brief.\n\nBe kind."
    assert said.messages == (SpokenMessage("user", "Hello?"),)
    assert [(it.request_id, it.approve) for it in said.approvals] == [("mcpr_1", False)]


def test_the_last_message_has_to_be_a_users() -> None:
    with pytest.raises(BadRequest):
        compose(spoken("Hi.", ":Hello."))


def test_metadata_is_tags_of_the_form_of_an_assignment() -> None:
    tags = (*to_tags({"order": "7", "sum": "a=b"}), "urgent")
    assert from_tags(tags) == {"order": "7", "sum": "a=b"}
    assert merge_tags(tags, {"order": "8"}) == ("urgent", "order=8")
