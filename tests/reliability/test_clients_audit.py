"""The audit of what clients of others sent and saw finds what is planted."""

from typing import Any

import pytest

from examples.bfcl.objects import StoredEvent
from reliability.clients.audit import check_answers, check_sent


def say(source: str, text: str) -> StoredEvent:
    fields: dict[str, Any] = {
        "kind": "MessageEvent",
        "source": source,
        "llm_message": {"content": [{"type": "text", "text": text}]},
    }
    return StoredEvent("key", 0, "id", fields)


EVENTS = [say("user", "One."), say("agent", "1"), say("user", "Two."), say("agent", "2")]


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        ({"One.": 1, "Two.": 1}, []),
        ({"One.": 2, "Two.": 1}, []),
        ({"One.": 1}, ["the message 'Two.', which nobody sent, is there 1 times"]),
        (
            {"One.": 1, "Two.": 1, "Three.": 1},
            ["the message 'Three.' was sent 1 times and is there 0 times"],
        ),
    ],
)
def test_messages_that_are_missing_or_that_nobody_sent_are_found(
    sent: dict[str, int], faults: list[str]
) -> None:
    assert list(check_sent(EVENTS, sent)) == faults


def test_a_message_that_is_there_more_often_than_it_was_sent_is_found() -> None:
    [fault] = check_sent([*EVENTS, say("user", "Two.")], {"One.": 1, "Two.": 1})
    assert fault == "the message 'Two.' was sent 1 times and is there 2 times"


@pytest.mark.parametrize(
    ("answers", "wrong"),
    [(["1", "2"], []), (["2"], []), (["2", "1"], ["1"]), (["1", "1"], ["1"]), (["3"], ["3"])],
)
def test_answers_are_those_of_the_log_in_its_order(answers: list[str], wrong: list[str]) -> None:
    faults = list(check_answers(EVENTS, answers))
    assert [fault.split("'")[1] for fault in faults] == wrong
