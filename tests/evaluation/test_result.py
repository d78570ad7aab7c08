"""Every attempt is kept, and the newest of each epoch counts."""

from typing import Any

import pytest
from pydantic import ValidationError

from perdure.evaluation.result import (
    SampleResult,
    failure_of_code,
)
from tests.evaluation.results import attempt, result


def test_the_newest_attempt_of_an_epoch_counts() -> None:
    tried = SampleResult(id="s", attempts=(attempt(1, 1), attempt(None), attempt(0, 0, 1)))
    assert [(item.epoch, item.number) for item in tried.final_attempts] == [(0, 1), (1, 0)]
    assert tried.numbers("exact") == [0.0, 1.0]
    assert tried.reduce("exact") == 0.5
    assert tried.reduce("exact", "pass@3") is None
    assert tried.reduce("other") is None


def test_a_samples_status_is_that_of_its_worst_epoch() -> None:
    assert result("s", 1, 1).status(2) == "scored"
    assert result("s", 1).status(2) == "missing"
    assert result("s", 1, None).status(2) == "failed"
    limited = attempt(0, 1, limit="max_budget")
    assert SampleResult(id="s", attempts=(attempt(1), limited)).status(2) == "limited"


def test_an_attempt_at_a_limit_is_scored_and_an_outage_is_not() -> None:
    assert [
        failure_of_code(text) for text in ("max_iterations", "deadline", "context_overflow")
    ] == [
        None,
        None,
        None,
    ]
    kinds = {
        code: failure_of_code(code) for code in ("overloaded", "auth", "content", "never heard of")
    }
    assert {code: failure.kind for code, failure in kinds.items() if failure} == {
        "overloaded": "infrastructure",
        "auth": "configuration",
        "content": "agent",
        "never heard of": "infrastructure",
    }


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"status": "scored", "failure": {"kind": "agent", "code": "x"}}, "has a failure"),
        ({"status": "failed"}, "what failed has a failure"),
        (
            {"status": "failed", "failure": {"kind": "agent", "code": "x"}},
            "a failure is never a score",
        ),
        ({"status": "limited"}, "says into which"),
    ],
)
def test_an_attempts_fields_agree_with_its_status(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        attempt(0, **fields)
