"""Counts that add up, whatever happens in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from agent.trial import Scored
from evaluation.progress import Progress, counted, scored_of, spent_by, together
from evaluation.result import Attempt, Failure
from evaluation.score import Score
from events.usage import Usage

RIGHT = Scored(status="scored", numbers={"exact": 1.0}, usage=Usage(prompt_tokens=5, cost=0.5))
WRONG = Scored(status="scored", numbers={"exact": 0.0})
LIMITED = Scored(status="limited", code="max_tokens", numbers={"exact": 0.0})
FAILED = Scored(status="failed", failure="infrastructure", code="internal", detail="It broke.")

outcomes = st.lists(st.sampled_from([RIGHT, WRONG, LIMITED, FAILED]), max_size=30)


@given(outcomes, st.integers(0, 5))
def test_it_adds_up(scored: list[Scored], running: int) -> None:
    progress = Progress(name="b", expected=len(scored) + running + 3, running=running)
    for one in scored:
        progress = counted(spent_by(progress, one), one)
    assert progress.missing == 3
    assert progress.done == len(scored) - progress.failed
    assert sum(progress.failures.values()) == progress.failed
    assert sum(progress.limits.values()) == progress.limited
    assert progress.attempts == len(scored)


@given(outcomes)
def test_what_does_not_count_any_more_leaves_no_trace(scored: list[Scored]) -> None:
    before = counted(Progress(name="b", expected=50), WRONG)
    progress = before
    for one in scored:
        progress = counted(progress, one)
    for one in scored:
        progress = counted(progress, one, -1)
    assert progress.model_copy(update={"newest_failure": None}) == before


@given(st.lists(outcomes, max_size=4))
def test_the_parts_are_the_whole(parts: list[list[Scored]]) -> None:
    told = []
    for scored in parts:
        part = Progress(name="b/0", expected=len(scored) + 1, status="finished")
        for one in scored:
            part = counted(spent_by(part, one), one)
        told.append(part)
    whole = together("b", told)
    assert whole.expected == sum(len(scored) + 1 for scored in parts)
    assert whole.missing == len(parts)
    assert whole.spent.cost == sum(part.spent.cost for part in told)
    alone = Progress(name="b")
    for one in (one for scored in parts for one in scored):
        alone = counted(alone, one)
    assert whole.scores == alone.scores
    assert whole.failures == alone.failures


def test_what_is_left_is_estimated_by_what_was_done() -> None:
    progress = Progress(name="b", expected=10, scored=4, running=2, seconds=8.0, finished=4)
    assert progress.seconds_left == 12.0
    assert Progress(name="b", expected=10).seconds_left is None


def test_an_attempt_is_counted_by_its_scores_and_its_graders() -> None:
    attempt = Attempt(
        conversation_id="c",
        status="scored",
        scores={
            "plain": Score(value="C"),
            "table": Score(value={"a": 1, "b": "word"}),
        },
        usage=Usage(cost=1.0, prompt_tokens=3),
        grading=Usage(cost=0.5),
    )
    scored = scored_of(attempt)
    assert scored.numbers == {"plain": 1.0, "table/a": 1.0}
    assert (scored.usage.cost, scored.usage.prompt_tokens) == (1.5, 3)
    failure = Failure(kind="scorer", code="unscorable", detail="x" * 1000)
    failed = scored_of(Attempt(conversation_id="c", status="failed", failure=failure))
    assert (failed.failure, failed.code, len(failed.detail)) == ("scorer", "unscorable", 500)
