"""The pages: their numbers are those of the results, and nothing of them is from elsewhere."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.score import Score
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.evaluation.summary import Summary, summarize
from perdure.events.usage import Usage
from perdure.exports.report import batch as report
from perdure.exports.report.collect import MAX_ROWS, BatchDescription, Collected
from perdure.exports.report.settings import settings_of
from tests.evaluation.results import attempt, result
from tests.exports.pages import Page, compared_page, pair, scores_by_sample, words

HOSTILE = (
    '</td></script><script>alert(1)</script><img src=x onerror="alert(1)">\x1b\ud800\u202e&amp;'
)


def spec(**fields: Any) -> BatchSpec:
    defaults = {
        "name": "sums",
        "dataset": "sums.jsonl",
        "model": "openai/big",
        "agent": {},
        "scorers": ["exact"],
    }
    return parse_batch(defaults | fields)


def page(results: Iterable[SampleResult], expected: int, **fields: Any) -> Page:
    about = BatchDescription(fields.pop("spec", spec()), expected, **fields)
    collected = Collected(about.spec)
    for item in results:
        collected.add(item)
    return Page(b"".join(report.page(about, collected)).decode())


def story() -> list[SampleResult]:
    """Build five samples: two right, one wrong, one limited, one that failed twice."""
    failure = AttemptFailure(kind="scorer", code="unscorable", detail="There is no target.")
    return [
        result("a", 1, level=1),
        result("b", 1, level=2),
        result("c", 0, level=2),
        SampleResult(
            id="d", metadata={"level": 10}, attempts=(attempt(1, limit="deadline", stuck=True),)
        ),
        SampleResult(
            id="e", attempts=(attempt(), attempt(None, 0, 1, status="failed", failure=failure))
        ),
    ]


def numbers_of(text: str) -> list[int]:
    return [int(item.replace(",", "")) for item in re.findall(r"\d[\d,]*", text)]


def test_the_counts_add_up_and_say_what_nobody_knows() -> None:
    html_page = page(story(), 7)
    assert "7 samples expected = 3 + 1 + 1 + 2." in html_page.sections["counts"]
    assert "no result yet (running or not started): 2" in html_page.sections["counts"]
    widths = [float(item.get("width", "")) for item in html_page.plot("Progress").iter("rect")]
    assert sum(widths) == pytest.approx(560, abs=0.1)
    assert widths[0] == pytest.approx(3 / 7 * 560, abs=0.01)
    page_while_running = page(story(), 7, running=1)
    assert "7 samples expected = 3 + 1 + 1 + 1 + 1." in page_while_running.sections["counts"]


def test_a_dataset_that_became_smaller_is_told() -> None:
    section = page(story(), 4).sections["counts"]
    assert "5 samples expected = 3 + 1 + 1 + 0." in section
    assert "4 samples are in it now, and there are results of 5" in section


def test_every_score_has_its_errors_and_every_reducer() -> None:
    batch = spec(epochs=2, reducers=["mean", "pass@2"])
    results = [result("a", 1, 0), result("b", 1, 1), result("c", 0, 0), result("d", 1)]
    [table] = page(results, 8, spec=batch).tables["scores"]
    assert table.column("Reduced by") == ["mean", "pass@2"]
    assert table.column("Samples") == ["4", "3"]
    assert table.column("Mean") == ["0.625", "0.667"]
    estimates = summarize(results, 8, batch.reducers).measures[0].estimates
    for row, estimate in zip(table.rows, estimates.values(), strict=True):
        assert row[5] == f"{estimate.standard_error:.3f}"
        assert estimate.interval is not None
        assert row[6] == f"{estimate.interval.low:.3f} to {estimate.interval.high:.3f}"
    assert table.rows[0][7] == "—"
    assert estimates["pass@2"].wilson is not None
    assert table.rows[1][7].startswith(f"{estimates['pass@2'].wilson.low:.3f} to ")


def test_a_plot_of_groups_is_to_scale_and_in_the_order_of_numbers() -> None:
    results = [result(str(at), at % 4 < 3, level=(2, 10)[at % 2]) for at in range(40)]
    plot = page(results, 40).plot("exact by level")
    two, ten = (item for item in plot.iter("rect"))
    names = [word for word in words(plot) if word in ("2", "10")]
    assert names == ["2", "10"]
    assert float(two.get("width", "")) == 216
    assert float(ten.get("width", "")) == 108
    assert "1.000 ± 0.000 (n = 20)" in words(plot)
    assert "0.500 ± 0.115 (n = 20)" in words(plot)
    assert {"0", "0.5", "1"} & set(words(plot)) >= {"0", "1"}
    assert "mean of exact" in words(plot)
    errors = [line for line in plot.iter("line") if line.get("class") == "error"]
    assert len(errors) == 6


def test_the_settings_name_the_scorers_and_what_was_changed() -> None:
    rows = dict(settings_of(spec(scorers=["exact", {"kind": "json", "name": "facts"}], epochs=3)))
    assert rows["Scorers"] == "exact; facts (json)"
    assert (rows["Epochs"], rows["Prompt"]) == ("3", "the default one")


def test_a_plot_of_scores_above_one_has_room_for_them() -> None:
    results = [result(str(at), (2, 1)[at % 2], level=at % 2) for at in range(8)]
    long_bar, short_bar = page(results, 8).plot("exact by level").iter("rect")
    assert float(long_bar.get("width", "")) == 2 * float(short_bar.get("width", "")) > 100


def test_distributions_have_all_attempts_that_count() -> None:
    results = [
        SampleResult(
            id=str(at),
            attempts=(
                attempt(1, seconds=float(at), turns=at % 7, usage=Usage(cost=at / 100)),
                attempt(1, 0, 1, seconds=float(at), turns=at % 7, usage=Usage(cost=at / 100)),
            ),
        )
        for at in range(100)
    ]
    html_page = page(results, 100)
    for name, table in zip(("Cost", "Time", "Turns"), html_page.tables["spread"], strict=True):
        assert sum(map(int, table.column("Attempts"))) == 100
        heights = [float(item.get("height", "")) for item in html_page.plot(name).iter("rect")]
        most = max(map(int, table.column("Attempts")))
        assert heights.index(max(heights)) == list(map(int, table.column("Attempts"))).index(most)
    assert html_page.tables["spread"][2].column("answers of the model") == list("0123456")
    assert "median 49" in html_page.plot("Time").get("aria-label", "")


def test_words_are_counted_with_what_they_count_as() -> None:
    results = [result(str(at), grade) for at, grade in enumerate(["C", "C", "P", "red"])]
    [table] = page(results, 4).tables["labels"]
    assert table.rows == [
        ["exact", "C", "2", "50.0 %", "1.000"],
        ["exact", "P", "1", "25.0 %", "0.500"],
        ["exact", "red", "1", "25.0 %", "no number"],
    ]


def test_failures_are_by_cause_and_an_attempt_that_was_made_again_is_none() -> None:
    html_page = page(story(), 5)
    [causes] = html_page.tables["failures"]
    assert causes.rows == [
        ["scorer", "unscorable", "1", "0", "There is no target.", "e"],
        ["infrastructure", "timeout", "0", "1", "—", "e"],
    ]
    assert html_page.tables["limits"][0].rows == [["deadline", "1", "25.0 %"]]
    assert "the agent got stuck: 1." in html_page.sections["limits"]


def test_the_first_hundred_causes_are_counted_and_the_others_together() -> None:
    def failed(number: int, code: int) -> SampleResult:
        failure = AttemptFailure(kind="scorer", code=f"code-{code:03}", detail="No.")
        final = attempt(None, status="failed", failure=failure)
        return SampleResult(id=f"s{number:03}", attempts=(final,))

    codes = [*range(103), 0]
    results = [failed(number, code) for number, code in enumerate(codes)]
    collected = Collected(spec())
    for item in results:
        collected.add(item)
    causes = {cause.code: cause.final for cause in collected.causes()}
    assert len(causes) == 101
    assert (causes["code-000"], causes["code-099"], causes["(others)"]) == (2, 1, 3)


def test_what_was_spent_is_that_of_all_attempts_with_grading() -> None:
    graded = attempt(1, grading=Usage(prompt_tokens=7, completion_tokens=1, cost=0.25))
    html_page = page([*story(), SampleResult(id="f", attempts=(graded,))], 6)
    [table] = html_page.tables["spent"]
    spent = {row[0]: row[1:] for row in table.rows}
    assert spent["Cost of the agent"] == ["$3.50", "$0.5000"]
    assert spent["Tokens of prompts"] == ["70", "10.0"]
    assert spent["Cost of grading"][0] == "$0.2500"
    assert spent["Tokens of grading"][0] == "8"
    assert spent["Turns"] == ["21", "3.0"]
    assert "$3.75" in html_page.sections[""]


def test_what_went_wrong_comes_first() -> None:
    [table] = page(story(), 5).tables["samples"]
    assert table.kinds == ["failed", "wrong", "limited", "right", "right"]
    assert table.column("Sample") == ["e", "c", "d", "a", "b"]
    assert table.rows[0][5] == "scorer, unscorable: There is no target."
    assert table.rows[2][2:4] == ["limited (deadline)", "exact: 1"]


def test_there_are_ways_to_the_conversations() -> None:
    odd = attempt(1, conversation_id='x" onclick="y/../z')
    html_page = page(
        [SampleResult(id="a", attempts=(odd,))],
        1,
        ui="http://localhost:8233/",
        namespace="my space",
        conversations="./pages",
    )
    name = "x%22%20onclick%3D%22y%2F..%2Fz"
    ways = [value for tag, key, value in html_page.attributes if key == "href" and value[0] != "#"]
    assert ways == [
        f"./pages/{name}.html",
        f"http://localhost:8233/namespaces/my%20space/workflows/conv-{name}",
    ]
    assert 'perdure show x" onclick="y/../z' in html_page.sections["samples"]


def test_whatever_was_said_is_text() -> None:
    failure = AttemptFailure(kind="agent", code=HOSTILE, detail=HOSTILE)
    hostile = SampleResult.model_construct(
        id=HOSTILE,
        target=(HOSTILE,),
        metadata={HOSTILE: HOSTILE},
        attempts=(
            attempt(1, answer=HOSTILE, scores={HOSTILE: Score(value={HOSTILE: 1, "w": HOSTILE})}),
            attempt(None, 1, failure=failure, limit=HOSTILE, conversation_id=HOSTILE),
        ),
    )
    batch = spec(agent={"system_prompt": HOSTILE.replace("\ud800", ""), "agent": "<b>"}, epochs=2)
    html_page = page(
        [hostile], 2, spec=batch, ui="http://localhost", conversations="pages", made=HOSTILE
    )
    plain = page(story(), 5)
    assert html_page.names <= plain.names | {"details", "summary", "a", "strong"}
    assert html_page.html.count("<script") == 1
    assert not [name for _, name, _ in html_page.attributes if name.startswith("on")]
    assert not re.search("[\x00-\x08\x0e-\x1f]", html_page.html)
    assert "alert(1)" in html_page.sections["samples"]
    sides = [
        scores_by_sample([result(HOSTILE, value, **{HOSTILE: HOSTILE})], "exact", "mean")
        for value in (0, 1)
    ]
    both = compared_page(pair(*sides), notes=[HOSTILE])
    assert both.html.count("<script") == 1
    assert "img" not in both.names


@pytest.mark.parametrize("kind", ["batch", "comparison"])
def test_a_page_asks_no_other_host_and_runs_only_its_own_script(kind: str) -> None:
    sides = [scores_by_sample(story(), "exact", "mean")] * 2
    html_page = page(story(), 5) if kind == "batch" else compared_page(pair(*sides))
    asking = [
        value
        for _, name, value in html_page.attributes
        if name in ("src", "href", "srcset", "data", "action", "style") and value[0] != "#"
    ]
    assert asking == []
    assert "url(" not in html_page.html
    assert "@import" not in html_page.html
    assert "://" not in html_page.html
    [policy] = [value for _, name, value in html_page.attributes if value.startswith("default-src")]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", html_page.html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_plots_have_words_for_those_who_do_not_see_them() -> None:
    html_page = page([result(str(at), at % 2, level=at % 3) for at in range(9)], 9)
    assert len(html_page.plots) == 5
    for plot in html_page.plots:
        assert plot.get("role") == "img"
        assert numbers_of(plot.get("aria-label", ""))


def test_a_batch_without_results_is_a_page_too() -> None:
    html_page = page([], 12)
    assert "12 samples expected = 0 + 0 + 0 + 12." in html_page.sections["counts"]
    assert "Nothing has a score yet." in html_page.sections["scores"]
    assert "samples" not in html_page.tables


def many(count: int) -> Iterator[SampleResult]:
    """A hundredth of them failed; of the rest a half is wrong."""
    failed, *scored = attempt(), attempt(0), attempt(1)
    for at in range(count):
        made: AttemptResult = scored[at % 2] if at % 100 else failed
        yield SampleResult.model_construct(id=f"sample-{at}", attempts=(made,), metadata={"at": at})


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.longest)])
def test_of_many_samples_the_worst_are_shown_and_the_rest_is_counted(count: int) -> None:
    html_page = page(many(count), count)
    assert len(html_page.html) < 2_000_000
    failed = count // 100
    expected = f"{count:,} samples expected = {count - failed:,} + 0 + {failed:,} + 0."
    assert expected in html_page.sections["counts"]
    [table] = html_page.tables["samples"]
    assert table.kinds == ["failed"] * failed + ["wrong"] * (MAX_ROWS - failed)
    assert f"2,000 of {count:,} with a result." in html_page.sections["samples"]
    hidden = re.search(r"Not shown: ([\d,]+) \((.*?)\)", html_page.sections["samples"])
    assert hidden is not None
    assert numbers_of(hidden[1]) == [count - MAX_ROWS]
    assert sum(numbers_of(hidden[2].replace("below 1", ""))) == count - MAX_ROWS
    assert "Too many different values for a breakdown: at." in html_page.sections["groups"]


def test_totals_of_the_page_are_those_of_the_summary() -> None:
    summary: Summary = summarize(story(), 7)
    html_page = page(story(), 7)
    counts = summary.counts
    text = f"{counts.expected} samples expected = {counts.scored} + {counts.limited} + "
    assert text + f"{counts.failed} + {counts.missing}." in html_page.sections["counts"]
    assert len(html_page.tables["samples"][0].rows) == counts.done + counts.failed
