"""What may travel through Temporal."""

import pytest
from temporalio.exceptions import ApplicationError

from agent.inbox import Said
from agent.start import Start
from agent.state import State
from client.converter import CONVERTER, LIMIT

CONVERT = CONVERTER.payload_converter


def test_a_value_comes_back_as_it_went() -> None:
    start = Start(conversation_id="c", user_id="u", state=State(), inbox=(Said(text="hé"),))
    [payload] = CONVERT.to_payloads([start])
    assert CONVERT.from_payloads([payload], [Start]) == [start]


def test_absent_fields_take_no_room() -> None:
    [payload] = CONVERT.to_payloads([Said(text="hi")])
    assert payload.data == b'{"kind":"said","text":"hi","images":[]}'


def test_what_is_too_large_is_refused_and_the_field_is_named() -> None:
    with pytest.raises(ApplicationError, match=r"Said\.text is too large: [\d,]+ bytes of 131,072"):
        CONVERT.to_payloads([Said(text="x" * LIMIT)])
    with pytest.raises(ApplicationError, match="str is too large") as refused:
        CONVERT.to_payloads(["x" * LIMIT])
    assert refused.value.non_retryable


def test_what_just_fits_goes() -> None:
    [payload] = CONVERT.to_payloads(["x" * (LIMIT - 2)])
    assert len(payload.data) == LIMIT
