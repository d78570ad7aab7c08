"""The page about a comparison, and its lines: their numbers are those of the samples."""

import pytest

from perdure.exports.report.batch_comparison import ScoresBySample, compare_batches
from perdure.exports.report.comparison import MAX_LISTED, comparison_json, comparison_lines
from tests.evaluation.results import result
from tests.exports.pages import WHAT, compared_page, pair, scores_by_sample


def sides() -> tuple[ScoresBySample, ScoresBySample]:
    """Twelve samples became better, two worse, one is only in each."""
    before = [result(f"s{at:02}", at in (12, 13), level=at % 2) for at in range(30)]
    after = [result(f"s{at:02}", at < 12, level=at % 2) for at in range(30)]
    return (
        scores_by_sample([*before, result("old", 1)], "exact", "mean"),
        scores_by_sample([*after, result("new", 1)], "exact", "mean"),
    )


def test_a_comparison_tells_the_difference_and_whether_it_is_more_than_noise() -> None:
    comparison = pair(*sides())
    html_page = compared_page(comparison)
    assert (
        "More than noise: the score went up (p = 0.0100, paired t-test, adjusted)."
        in html_page.html.replace("&#39;", "'")
    )
    section = html_page.sections["batch-1"]
    assert "+0.333" in section
    assert "better: 12" in section
    assert "the same: 16" in section
    assert "worse: 2" in section
    assert "Scored only in before: 1 (old)." in section
    groups, better, worse = html_page.tables["batch-1"]
    assert groups.column("Pairs") == ["15", "15"]
    assert groups.column("Difference") == ["+0.333", "+0.333"]
    assert better.column("Sample") == [f"s{at:02}" for at in range(12)]
    assert worse.rows == [[f"s{at}", "1.000", "0.000", "-1.000"] for at in (12, 13)]


def test_several_are_each_compared_with_the_first() -> None:
    before, after = sides()
    html_page = compared_page(
        compare_batches("better", before, after, ""), compare_batches("same", before, before, "")
    )
    [overview] = html_page.tables["overview"]
    assert overview.column("Batch") == ["better", "same"]
    assert overview.column("Difference") == ["+0.333", "+0.000"]
    assert "No sample has another score than before." in html_page.sections["batch-2"]
    plot = html_page.plot("Differences from before")
    widths = [float(item.get("width", "")) for item in plot.iter("rect")]
    assert widths[1] == 0.5
    assert widths[0] > 50


def test_keys_without_a_breakdown_are_named() -> None:
    whole = [
        result(str(at), at % 2, row=at, **{f"key-{key:02}": 1 for key in range(41)})
        for at in range(60)
    ]
    scores = scores_by_sample(whole, "exact", "mean")
    comparison = pair(scores, scores)
    assert comparison.ungrouped == ("key-40", "row")
    assert len(comparison.groups) == 40
    assert "there are too many: key-40, row." in compared_page(comparison).sections["batch-1"]


def test_where_no_sample_is_in_both_nothing_is_compared() -> None:
    comparison = pair(
        scores_by_sample([result("a", 1)], "exact", "mean"),
        scores_by_sample([result("b", 1)], "exact", "mean"),
    )
    html_page = compared_page(comparison)
    assert "nothing can be compared" in html_page.sections["batch-1"]
    assert any(
        "nothing can be compared" in line
        for line in comparison_lines("before", WHAT, [comparison], False)
    )


def test_lines_have_the_first_changes_or_all() -> None:
    before = scores_by_sample(
        [result(f"s{at:02}", 0) for at in range(MAX_LISTED + 5)], "exact", "mean"
    )
    after = scores_by_sample(
        [result(f"s{at:02}", 1) for at in range(MAX_LISTED + 5)], "exact", "mean"
    )
    short, whole = (
        list(comparison_lines("before", WHAT, [pair(before, after)], every))
        for every in (False, True)
    )
    assert "    ... and 5 more: --all lists them" in short
    assert sum("0.000 -> 1.000" in line for line in short) == MAX_LISTED
    assert sum("0.000 -> 1.000" in line for line in whole) == MAX_LISTED + 5


def test_a_document_has_what_the_page_has() -> None:
    document = comparison_json("before", WHAT, [pair(*sides())])
    [comparison] = document["comparisons"]
    assert (document["before"], comparison["after"], comparison["pairs"]) == ("before", "after", 30)
    assert comparison["difference"] == pytest.approx(1 / 3)
    assert comparison["significant"] is True
    assert [change["id"] for change in comparison["worse"]] == ["s12", "s13"]
    assert comparison["groups"]["level"]["0"]["pairs"] == 15
    assert comparison["groups"]["level"]["0"]["better"] == 6


def test_the_first_hundred_metrics_are_compared_over_all_samples() -> None:
    metrics = {f"metric-{number:03}": float(number) for number in range(101)}
    scores = scores_by_sample([result(name, metrics) for name in "ab"], "exact", "mean")
    assert len(scores.values) == 100
    assert scores.values["metric-099"] == {"a": 99, "b": 99}
    assert "metric-100" not in scores.values
