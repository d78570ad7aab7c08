"""Every attempt is kept, and the newest of each epoch counts."""

from typing import Any

import pytest
from pydantic import ValidationError

from evaluation.result import SampleResult, added, ended_by, reduced_by_sample, rescored
from evaluation.score import Score
from tests.evaluation.results import attempt, result


def test_the_newest_attempt_of_an_epoch_counts() -> None:
    tried = SampleResult(id="s", attempts=(attempt(1, 1), attempt(None), attempt(0, 0, 1)))
    assert [(one.epoch, one.number) for one in tried.final] == [(0, 1), (1, 0)]
    assert tried.numbers("exact") == [0.0, 1.0]
    assert tried.reduced("exact") == 0.5
    assert tried.reduced("exact", "pass@3") is None
    assert tried.reduced("other") is None


def test_a_sample_is_what_its_worst_epoch_is() -> None:
    assert result("s", 1, 1).status(2) == "scored"
    assert result("s", 1).status(2) == "missing"
    assert result("s", 1, None).status(2) == "failed"
    limited = attempt(0, 1, limit="max_budget")
    assert SampleResult(id="s", attempts=(attempt(1), limited)).status(2) == "limited"


def test_a_limit_is_scored_and_an_outage_is_not() -> None:
    assert [ended_by(one) for one in ("max_iterations", "deadline", "context_overflow")] == [
        None,
        None,
        None,
    ]
    kinds = {code: ended_by(code) for code in ("overloaded", "auth", "content", "never heard of")}
    assert {code: found.kind for code, found in kinds.items() if found} == {
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
def test_an_attempt_is_one_of_three(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        attempt(0, **fields)


def test_an_attempt_is_added_once() -> None:
    empty = SampleResult(id="s")
    once = added(empty, attempt(1, 1))
    twice = added(added(once, attempt(None, 0)), attempt(0, 1))
    assert [(one.epoch, one.status) for one in twice.attempts] == [(0, "failed"), (1, "scored")]
    assert twice.numbers("exact") == [0.0]
    assert SampleResult.model_validate_json(twice.model_dump_json()) == twice


def test_what_is_scored_again_has_the_new_scores_alone() -> None:
    scores = {"includes": Score(value=True)}
    again = rescored(attempt(None), scores)
    assert (again.status, again.failure, again.scores) == ("scored", None, scores)
    assert rescored(attempt(0, limit="deadline"), scores).status == "limited"


def test_two_runs_are_compared_by_the_samples_that_have_a_score() -> None:
    results = [result("a", 1, 0), result("b", None), result("c", {"f1": 0.5, "label": "x"})]
    assert reduced_by_sample(results, "exact") == {"a": 0.5}
    assert reduced_by_sample(results, "exact", "max") == {"a": 1.0}
    assert reduced_by_sample(results, "exact", metric="f1") == {"c": 0.5}
