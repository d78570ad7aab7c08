"""Any invalid input is described in a short sentence."""

import pytest
from pydantic import ValidationError

from perdure.agent.loop.inbox import UserMessage
from perdure.events.validation_errors import describe_errors, quote


def wrong(sent: object) -> str:
    with pytest.raises(ValidationError) as refused:
        UserMessage.model_validate(sent)
    return describe_errors(refused.value)


def test_every_error_is_described_with_its_place() -> None:
    assert wrong({"sender": 3}) == (
        "the key 'text' is missing; sender: input should be a valid string"
    )
    assert wrong(5) == "input should be a valid dictionary or instance of UserMessage"


def test_only_the_first_errors_are_described() -> None:
    message = wrong({f"{nth}{'k' * 10_000}": nth for nth in range(1000)})
    assert message.endswith("; and 998 more")
    assert len(message) < 1000


def test_quoted_input_can_be_encoded() -> None:
    assert wrong({"text": "a", "\ud800": 1}).encode()
    assert len(quote("x" * 10**6)) < 200
    assert quote("\ud800").encode()
