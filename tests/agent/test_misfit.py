"""What was wrong with what somebody sent is told in a few words, whatever it was."""

import pytest
from pydantic import ValidationError

from agent.inbox import Said
from agent.misfit import misfit, quoted


def wrong(sent: object) -> str:
    with pytest.raises(ValidationError) as refused:
        Said.model_validate(sent)
    return misfit(refused.value)


def test_every_fault_is_told_by_its_place() -> None:
    assert wrong({"sender": 3}) == ("text: Field required; sender: Input should be a valid string")
    assert wrong(5) == "Input should be a valid dictionary or instance of Said"


def test_the_first_few_of_many_faults_are_told() -> None:
    told = wrong({f"{nth}{'k' * 10_000}": nth for nth in range(1000)})
    assert told.endswith("; and 996 more")
    assert len(told) < 1000


def test_what_is_told_again_can_be_sent() -> None:
    assert wrong({"text": "a", "\ud800": 1}).encode()
    assert len(quoted("x" * 10**6)) < 200
    assert quoted("\ud800").encode()
