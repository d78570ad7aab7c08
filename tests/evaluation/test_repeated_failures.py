"""Failures that repeat, and what is advised."""

import pytest

from perdure.evaluation.repeated_failures import FailureCount, failure_advice, resume_advice


def count(outcomes: str) -> FailureCount:
    """Count attempts, each of which is `x` if it failed."""
    failures = FailureCount()
    for outcome in outcomes:
        failures.add(outcome == "x")
    return failures


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ("xx", None),
        ("xxx", "3 attempts in a row failed"),
        (".xx.xx.", "4 of 7 attempts failed"),
        ("xx.xx", None),
        (".x.x.x", None),
        ("." * 20 + "xx", None),
        ("." * 20 + "xxx", "3 attempts in a row failed"),
    ],
)
def test_three_in_a_row_or_most_of_at_least_six_are_a_reason(
    outcomes: str, sentence: str | None
) -> None:
    assert count(outcomes).describe_repetition(3) == sentence


def test_one_failure_is_enough_where_the_batch_says_so() -> None:
    assert count("x").describe_repetition(1) == "1 attempt in a row failed"


def test_no_agent_is_run_again_for_a_broken_scorer() -> None:
    assert "`perdure batch rescore sums`" in resume_advice("scorer", "sums")
    assert "retry" not in resume_advice("scorer", "sums")
    for kind in ("configuration", "infrastructure", "sample", None):
        assert "`perdure batch retry sums`" in resume_advice(kind, "sums")
        assert "`perdure batch resume sums`" in resume_advice(kind, "sums")


def test_what_is_missing_is_run_and_what_is_unscorable_is_only_scored() -> None:
    assert "retry" not in failure_advice("sums", ["scorer"], missing=False)
    assert "rescore" not in failure_advice("sums", ["agent"], missing=False)
    both = failure_advice("sums", ["scorer"], missing=True)
    assert "rescore" in both
    assert "retry" in both
