"""The progress of a batch, on a terminal of 80 columns and in the lines of a log."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from perdure.cli.batch import follow
from perdure.cli.batch.follow import LiveDisplay, LogDisplay
from perdure.cli.batch.progress_view import (
    BAR_COLUMNS,
    closing_sentence,
    format_duration,
    format_pace,
    format_score,
    is_complete,
    progress_fields,
    progress_line,
    progress_lines,
)
from perdure.cli.options import Format
from perdure.client.trouble import Trouble
from perdure.evaluation.progress import Progress, RunningMean
from perdure.events.usage import Usage


def make_progress(**fields: Any) -> Progress:
    """Make the progress of a half-done batch with some failures."""
    defaults = {
        "name": "sums",
        "expected": 2000,
        "scored": 970,
        "limited": 10,
        "failed": 20,
        "running": 40,
        "scores": {"exact": RunningMean(count=980, total=490.0, squares=490.0)},
        "failures": {"infrastructure": 18, "scorer": 2},
        "limits": {"max_tokens": 10},
        "newest_failure": "timeout: The model \x1b[2Jdid not\nanswer.",
        "spent": Usage(prompt_tokens=1_000_000, completion_tokens=234_567, cost=12.5),
        "turns": 3100,
        "seconds": 500.0,
        "finished": 1000,
        "cost": 50.0,
    }
    return Progress.model_validate(defaults | fields)


def render_lines(progress: Progress, trouble: str | None = None) -> list[str]:
    return [line.plain for line in progress_lines(progress, trouble)]


def test_the_display_shows_every_known_figure() -> None:
    assert render_lines(make_progress(), "No worker has taken it up for 10 s.") == [
        f"sums  {'━' * 16}{'─' * 16}  49 %  running  8 min 20 s at work",
        "  samples   980 done, 20 failed, 40 running, 960 missing of 2,000",
        "  score     exact  0.500 ± 0.016  of 980",
        "  spent     $12.50 of $50.00, 1,234,567 tokens, 3,100 answers",
        "  pace      2.0 a second, 8 min 20 s left",
        "  limits    max_tokens 10",
        "  failures  infrastructure 18, scorer 2",
        "            the newest: timeout: The model \\x1b[2Jdid not answer.",
        "  waits     No worker has taken it up for 10 s.",
    ]


def test_a_paused_batch_shows_its_reason_and_no_time_left() -> None:
    paused = make_progress(status="paused", reason="The batch has spent $50.")
    assert render_lines(paused)[-1] == "  paused    The batch has spent $50."
    assert not [line for line in render_lines(paused) if "left" in line]
    assert progress_line(paused).endswith("; $12.50; paused")


@pytest.mark.parametrize("done", [0, 1, 3, 999, 1998, 1999, 2000])
@pytest.mark.parametrize("failed", [0, 1])
def test_the_bar_has_a_fixed_length_and_is_full_only_at_the_end(done: int, failed: int) -> None:
    first = render_lines(make_progress(scored=done, limited=0, failed=failed, running=0))[0]
    bar = first.split("  ")[1]
    assert len(bar) == BAR_COLUMNS
    assert ("100 %" in first) == (done == 2000)


def test_one_line_has_the_main_figures() -> None:
    assert progress_line(make_progress()) == (
        "sums: 980 of 2,000 done, 20 failed, 40 running, 960 missing; exact 0.500 ± 0.016; $12.50; "
        "2.0 a second, 8 min 20 s left"
    )


def test_the_closing_sentence_says_what_is_left_and_what_to_run() -> None:
    none = {"failed": 0, "running": 0}
    whole = make_progress(scored=1990, **none)
    assert (is_complete(whole), closing_sentence(whole)) == (
        True,
        "All 2,000 have a score, 10 of them at a limit.",
    )
    assert closing_sentence(make_progress(scored=1970, running=0)) == (
        "20 failed: `perdure batch rescore sums` scores again without running an agent, and "
        "`perdure batch retry sums` runs what is left."
    )
    unscorable = make_progress(scored=1970, running=0, failures={"scorer": 20})
    assert closing_sentence(unscorable) == (
        "20 failed: `perdure batch rescore sums` scores again without running an agent."
    )
    assert closing_sentence(make_progress(scored=1989, failures={}, **none)) == (
        "1 is missing: `perdure batch retry sums` runs what is left."
    )
    paused = make_progress(
        status="paused", blocked=True, reason="The key is wrong. " * 20 + "Mend it: `perdure do x`"
    )
    assert "1,000 are missing: `perdure batch resume sums` goes on." in closing_sentence(paused)
    assert "`perdure do x`" in "\n".join(line.plain for line in progress_lines(paused))
    assert closing_sentence(make_progress(status="stopped", failures={"infrastructure": 20})) == (
        "20 failed and 1,000 are missing: `perdure batch retry sums` runs what is left."
    )
    assert not any(
        map(is_complete, (make_progress(scored=1989, **none), make_progress(scored=1970)))
    )


@pytest.mark.parametrize(
    ("seconds", "notes"),
    [(0.2, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h")],
)
def test_a_duration_has_two_units(seconds: float, notes: str) -> None:
    assert format_duration(seconds) == notes


def test_a_pace_has_the_unit_that_fits() -> None:
    assert format_pace(make_progress(finished=0)) == ""
    assert format_pace(make_progress(finished=25)).startswith("3.0 a minute, ")
    assert format_pace(make_progress(finished=2)).startswith("14.4 an hour, ")


def test_a_single_score_has_no_standard_error() -> None:
    assert format_score(RunningMean(count=1, total=1.0, squares=1.0)) == "1.000"
    assert format_score(RunningMean()) == "-"


def test_json_has_the_derived_figures_too() -> None:
    progress = progress_fields(make_progress())
    assert (progress["done"], progress["missing"], progress["seconds_left"]) == (980, 960, 500.0)
    assert progress["scores"]["exact"]["mean"] == 0.5
    assert (progress["spent"]["cost"], progress["spent"]["cached_tokens"]) == (12.5, 0)
    counted = ("scored", "limited", "failed", "running", "missing")
    assert progress["expected"] == sum(progress[name] for name in counted)


def test_the_live_display_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=60, height=8, force_terminal=True)
    monkeypatch.setattr(follow, "stdout", screen)
    display = LiveDisplay(Live(console=screen, auto_refresh=False))
    for name in ("one", "two"):
        display.update(make_progress(name=name, newest_failure="x" * 500), None)
    rendered = display.text.plain.split("\n")
    assert len(rendered) == 7
    assert max(map(len, rendered)) < 60
    assert rendered[0].startswith("one  ━")


@pytest.mark.parametrize(("columns", "time"), [(60, ""), (79, ""), (99, "  8 min 20 s at work")])
def test_a_long_name_is_shortened_and_never_the_percentage(columns: int, time: str) -> None:
    for name in ("a-long-name-of-a-batch-" * 5, "名" * 60):
        title, *others = progress_lines(
            make_progress(name=name, at_work=["s" * 200]), None, columns
        )
        assert title.cell_len <= columns
        assert title.plain.partition("━")[0].endswith("…  ")
        assert title.plain.endswith(f"─  49 %  running{time}")
        shown = "".join(line.plain[12:] for line in others).replace(" ", "")
        assert f"batchwatch{name}{'s' * 200}" in shown, "a command is wrapped, and not cut"


def test_the_log_display_limits_lines_but_prints_alerts_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes: list[str] = []
    now = 100.0
    monkeypatch.setattr(follow, "note", lambda text, _="": notes.append(text))
    monkeypatch.setattr(follow, "monotonic", lambda: now)
    display = LogDisplay(Format.text)

    def notes_of(progress: Progress, trouble: Trouble | None = None) -> list[str]:
        notes.clear()
        display.update(progress, trouble)
        return [text.partition(" of ")[0] for text in notes]

    assert notes_of(make_progress(scored=1)) == ["sums: 11"]
    assert notes_of(make_progress(scored=2)) == [], "too soon"
    now = 106.0
    assert notes_of(make_progress(scored=1)) == [], "nothing new"
    assert notes_of(make_progress(scored=3)) == ["sums: 13"]
    paused = make_progress(scored=3, status="paused", reason="It was paused.")
    assert notes_of(paused) == ["sums: 13", "sums: It was paused."]
    assert notes_of(paused) == []
    assert notes_of(make_progress(scored=3)) == ["sums: 13", "sums: It goes on."]
    trouble_found = Trouble("untaken", "No worker has taken it up for 10 s.")
    assert notes_of(make_progress(scored=3), trouble_found) == [
        "sums: No worker has taken it up for 10 s."
    ]
    assert notes_of(make_progress(scored=3), trouble_found._replace(sentence="... for 15 s.")) == []
