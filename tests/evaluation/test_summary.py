"""Tests of the summary of a batch."""

import random
import tracemalloc
from collections.abc import Iterator
from math import isclose, sqrt

import pytest

from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import MAX_GROUPS, OTHER_LABELS, Summary, Tally, summarize
from tests.evaluation.results import attempt, result


def test_counts_add_up_to_the_expected_epochs() -> None:
    limited = SampleResult(id="c", attempts=(attempt(1, limit="max_tokens", stuck=True),))
    counts = summarize(
        [result("a", 1, None), result("b", 0), limited], expected=9, running=2
    ).counts
    assert (counts.scored, counts.limited, counts.failed) == (2, 1, 1)
    assert (counts.running, counts.missing, counts.done) == (2, 3, 3)
    assert counts.expected == counts.done + counts.failed + counts.running + counts.missing == 9


def test_a_shrunken_dataset_raises_the_expected_count() -> None:
    counts = summarize([result("a", 1), result("b", 1)], expected=1).counts
    assert (counts.expected, counts.missing) == (2, 0)


def test_a_failure_is_never_a_score_of_0() -> None:
    summary = summarize([result("a", 1), result("b", None)], expected=2)
    score = summary.score("exact")
    assert score is not None
    assert (score.samples, score.mean) == (1, 1.0)
    assert summary.failures == {"infrastructure": 1}


def test_samples_weigh_the_same_with_any_number_of_epochs() -> None:
    score = summarize([result("a", 1, 1, 1), result("b", 0)], expected=6).score("exact")
    assert score is not None
    assert (score.samples, score.mean) == (2, 0.5)
    assert isclose(score.standard_error or 0, sqrt(0.5 / 2))


def test_every_reducer_has_an_estimate() -> None:
    results = [result("a", 1, 0), result("b", 0, 0), result("c", 1, 1)]
    (measure,) = summarize(results, 6, ["mean", "pass@2", "pass^2"]).measures
    means = {name: item.mean for name, item in measure.estimates.items()}
    assert means == {"mean": 0.5, "pass@2": pytest.approx(2 / 3), "pass^2": pytest.approx(1 / 3)}
    assert measure.estimates["mean"].wilson is None
    assert measure.estimates["pass@2"].wilson is not None
    low, high = measure.estimates["mean"].interval or (1, 0)
    assert 0 <= low < 0.5 < high <= 1


def test_too_few_epochs_give_no_estimate() -> None:
    (measure,) = summarize([result("a", 1)], 2, ["pass@2"]).measures
    assert measure.estimates == {}


def test_every_attempt_is_paid_for_and_only_the_newest_is_scored() -> None:
    retried = SampleResult(
        id="a", attempts=(attempt(None, tool_errors=1), attempt(1, 0, 1, tool_calls=4, stuck=True))
    )
    summary = summarize([retried], 1)
    assert (summary.attempts, summary.turns, summary.seconds) == (2, 6, 4.0)
    assert (summary.tool_calls, summary.tool_errors, summary.stuck) == (4, 1, 1)
    assert (summary.usage.prompt_tokens, summary.usage.completion_tokens) == (20, 10)
    assert summary.usage.cost == 1.0
    assert (summary.counts.failed, summary.failures) == (0, {})


def test_limits_are_counted_by_their_code() -> None:
    results = [
        SampleResult(id=str(at), attempts=(attempt(0, limit=limit),))
        for at, limit in enumerate(["max_budget", "deadline", "max_budget"])
    ]
    assert summarize(results, 3).limits == {"deadline": 1, "max_budget": 2}


def test_a_breakdown_is_by_the_values_of_the_metadata() -> None:
    results = [
        result("a", 1, level=1, kind="sum", tags=["x"]),
        result("b", 0, level=2, kind="sum", note=None),
        result("c", 0, level=2, kind="sum", easy=True),
    ]
    (measure,) = summarize(results, 3).measures
    assert {key: sorted(groups) for key, groups in measure.groups.items()} == {
        "easy": ["true"],
        "kind": ["sum"],
        "level": ["1", "2"],
    }
    level = measure.groups["level"]["2"]
    assert (level.samples, level.mean, level.standard_error) == (2, 0.0, 0.0)


def test_a_metadata_key_with_too_many_values_makes_no_breakdown() -> None:
    results = [
        result(str(number), 1, number=number, kind="sum") for number in range(MAX_GROUPS + 1)
    ]
    summary = summarize(results, 0)
    assert summary.ungrouped == ("number",)
    assert list(summary.measures[0].groups) == ["kind"]


def test_numeric_metrics_and_labels_are_separated() -> None:
    results = [
        result(str(number), {"f1": 0.5, "grade": "C", "colour": "red"}) for number in range(2)
    ]
    colour, f1, grade = summarize(results, 2).measures
    assert (f1.metric, f1.estimates["mean"].mean, f1.labels) == ("f1", 0.5, {})
    assert (grade.metric, grade.estimates["mean"].mean, grade.labels) == ("grade", 1.0, {"C": 2})
    assert (colour.metric, colour.estimates, colour.labels) == ("colour", {}, {"red": 2})


def test_labels_beyond_the_limit_are_counted_together() -> None:
    results = [result(str(number), f"word {number}") for number in range(MAX_GROUPS + 7)]
    (measure,) = summarize(results, 0).measures
    assert len(measure.labels) == MAX_GROUPS + 1
    assert measure.labels[OTHER_LABELS] == 7


def test_the_order_of_the_results_does_not_matter() -> None:
    results = [result(str(number), number % 2, level=number % 3) for number in range(30)]
    summary = summarize(results, 30)
    random.Random(1).shuffle(results)
    other = summarize(results, 30)
    assert summary.counts == other.counts
    score, other_score = summary.score("exact"), other.score("exact")
    assert score is not None
    assert other_score is not None
    assert isclose(score.mean, other_score.mean)
    assert isclose(score.standard_error or 0, other_score.standard_error or 1)


def test_a_summary_comes_back_from_json() -> None:
    summary = summarize([result("a", 1, level=1), result("b", None)], 3)
    assert Summary.model_validate_json(summary.model_dump_json()) == summary


def test_a_batch_without_results_has_a_summary() -> None:
    summary = summarize([], expected=4)
    assert (summary.counts.missing, summary.measures, summary.score("exact")) == (4, (), None)


def test_memory_does_not_grow_with_the_results() -> None:
    tally = Tally()
    tracemalloc.start()
    try:
        for item in _many(500):
            tally.add(item)
        before = tracemalloc.get_traced_memory()[0]
        for item in _many(1500):
            tally.add(item)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000  # of 1,500 results with 10 KB each


def _many(count: int) -> Iterator[SampleResult]:
    for number in range(count):
        yield SampleResult(id=str(number), attempts=(attempt(number % 2, answer="x" * 10_000),))
