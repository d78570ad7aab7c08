"""The counts of a progress add up in any order of outcomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.attempt import AttemptSummary
from perdure.evaluation.progress import (
    Progress,
    RunningMean,
    add_spending,
    count_attempt,
    merge_progress,
    summarize_attempt,
)
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.score import Score
from perdure.events.usage import Usage

RIGHT = AttemptSummary(
    status="scored", scores={"exact": 1.0}, usage=Usage(prompt_tokens=5, cost=0.5)
)
WRONG = AttemptSummary(status="scored", scores={"exact": 0.0})
LIMITED = AttemptSummary(status="limited", code="max_tokens", scores={"exact": 0.0})
FAILED = AttemptSummary(
    status="failed", failure="infrastructure", code="internal", detail="It broke."
)

outcomes = st.lists(st.sampled_from([RIGHT, WRONG, LIMITED, FAILED]), max_size=30)


@given(outcomes, st.integers(0, 5))
def test_the_counts_of_a_progress_add_up(scored: list[AttemptSummary], running: int) -> None:
    progress = Progress(name="b", expected=len(scored) + running + 3, running=running)
    for item in scored:
        progress = count_attempt(add_spending(progress, item), item)
    assert progress.missing == 3
    assert progress.done == len(scored) - progress.failed
    assert sum(progress.failures.values()) == progress.failed
    assert sum(progress.limits.values()) == progress.limited
    assert progress.attempts == len(scored)


@given(outcomes)
def test_attempts_that_no_longer_count_leave_no_trace(scored: list[AttemptSummary]) -> None:
    before = count_attempt(Progress(name="b", expected=50), WRONG)
    progress = before
    for item in scored:
        progress = count_attempt(progress, item)
    for item in scored:
        progress = count_attempt(progress, item, -1)
    assert progress.model_copy(update={"newest_failure": None}) == before


@given(st.lists(outcomes, max_size=4))
def test_the_progress_of_shards_adds_up_to_that_of_the_batch(
    parts: list[list[AttemptSummary]],
) -> None:
    shards = []
    for scored in parts:
        part = Progress(name="b/0", expected=len(scored) + 1, status="finished")
        for item in scored:
            part = count_attempt(add_spending(part, item), item)
        shards.append(part)
    whole = merge_progress("b", shards)
    assert whole.expected == sum(len(scored) + 1 for scored in parts)
    assert whole.missing == len(parts)
    assert whole.spent.cost == sum(part.spent.cost for part in shards)
    alone = Progress(name="b")
    for item in (item for scored in parts for item in scored):
        alone = count_attempt(alone, item)
    assert whole.scores == alone.scores
    assert whole.failures == alone.failures


def test_the_remaining_time_is_estimated_by_the_pace() -> None:
    progress = Progress(name="b", expected=10, scored=4, running=2, seconds=8.0, finished=4)
    assert progress.seconds_left == 12.0
    assert Progress(name="b", expected=10).seconds_left is None


def test_an_attempts_summary_has_its_scores_and_grading_usage() -> None:
    attempt = AttemptResult(
        conversation_id="c",
        status="scored",
        scores={
            "plain": Score(value="C"),
            "table": Score(value={"a": 1, "b": "word"}),
        },
        usage=Usage(cost=1.0, prompt_tokens=3),
        grading=Usage(cost=0.5),
    )
    scored = summarize_attempt(attempt)
    assert scored.scores == {"plain": 1.0, "table/a": 1.0}
    assert (scored.usage.cost, scored.usage.prompt_tokens) == (1.5, 3)
    failure = AttemptFailure(kind="scorer", code="unscorable", detail="x" * 1000)
    failed = summarize_attempt(AttemptResult(conversation_id="c", status="failed", failure=failure))
    assert (failed.failure, failed.code, len(failed.detail)) == ("scorer", "unscorable", 500)


def test_a_running_mean_has_the_sum_of_squares() -> None:
    progress = Progress(name="b", expected=2)
    for score in (0.5, 2.0):
        progress = count_attempt(progress, RIGHT.model_copy(update={"scores": {"exact": score}}))
    assert progress.scores == {"exact": RunningMean(count=2, total=2.5, squares=4.25)}


def test_the_standard_error_of_a_running_mean_has_bessels_correction() -> None:
    assert RunningMean(count=2, total=1, squares=1).standard_error == pytest.approx(0.5)
    assert RunningMean(count=3, total=2, squares=2).standard_error == pytest.approx(1 / 3)
    assert RunningMean(count=4, total=10, squares=30).standard_error == pytest.approx(0.6454972)
    assert RunningMean(count=1, total=1, squares=1).standard_error is None
