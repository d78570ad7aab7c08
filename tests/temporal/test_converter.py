"""Size and form of payloads."""

import pytest
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State
from perdure.temporal.converter import CONVERTER, MAX_PAYLOAD_BYTES

CONVERT = CONVERTER.payload_converter


def test_a_value_comes_back_as_it_went() -> None:
    start = Start(conversation_id="c", user_id="u", state=State(), inbox=(UserMessage(text="hé"),))
    [payload] = CONVERT.to_payloads([start])
    assert CONVERT.from_payloads([payload], [Start]) == [start]


def test_absent_fields_take_no_room() -> None:
    [payload] = CONVERT.to_payloads([UserMessage(text="hi")])
    assert payload.data == b'{"kind":"message","text":"hi","images":[]}'


def test_a_payload_that_is_too_large_is_refused_with_its_largest_field() -> None:
    too_large = r"UserMessage\.text is too large: [\d,]+ bytes of 131,072"
    with pytest.raises(ApplicationError, match=too_large):
        CONVERT.to_payloads([UserMessage(text="x" * MAX_PAYLOAD_BYTES)])
    with pytest.raises(ApplicationError, match="str is too large") as refused:
        CONVERT.to_payloads(["x" * MAX_PAYLOAD_BYTES])
    assert refused.value.non_retryable


def test_a_payload_of_the_maximum_size_passes() -> None:
    [payload] = CONVERT.to_payloads(["x" * (MAX_PAYLOAD_BYTES - 2)])
    assert len(payload.data) == MAX_PAYLOAD_BYTES
