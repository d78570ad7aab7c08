"""Events that are neither messages nor calls, in a sentence each."""

import pytest

from perdure.events.event import AnyEvent
from perdure.exports.chat import turn_messages
from perdure.exports.notes import describe_event
from perdure.exports.turns import turns
from tests.builders import (
    agent,
    condensation,
    entries,
    error,
    error_event,
    id_of,
    observation,
    overflow,
    rejection,
    user,
)


@pytest.mark.parametrize(
    ("event", "note"),
    [
        (condensation(2, 4), "3 events left the agent's view."),
        (
            condensation(2, 4, "They talked."),
            "3 events left the agent's view. In their place:\nThey talked.",
        ),
        (overflow(), "The agent's view was to be made smaller."),
        (error_event("auth", "Set a key."), "auth: Set a key."),
        (observation(id_of(3), "look", "found"), "A late result of look: found"),
        (error(id_of(3), "look", words="broken"), "A late error of look: broken"),
        (rejection(id_of(3), "look"), "A late rejection of look: not on a Friday"),
        (user("Hello."), ""),
    ],
)
def test_an_event_is_described_in_a_sentence(event: AnyEvent, note: str) -> None:
    assert describe_event(event) == note


def test_a_message_without_text_is_left_out_of_a_chat() -> None:
    log = entries([user(""), user("Hello."), agent("")])
    messages = [message for turn in turns(log) for message in turn_messages(turn)]
    assert [(message["role"], message["content"][0].text) for message in messages] == [
        ("user", "Hello.")
    ]
