"""What is told of a batch, on a terminal of 80 columns and in the lines of a log."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

import cli.batch_following
from cli.batch_following import Drawn, Lines
from cli.batch_shown import (
    BAR,
    duration,
    end_of,
    is_whole,
    line_of,
    lines_of,
    pace_of,
    result_of,
    score_of,
)
from cli.output import Format
from client.trouble import Trouble
from evaluation.progress import Mean, Progress
from events.usage import Usage


def progress(**fields: Any) -> Progress:
    """Half of 2,000 samples, some of which have failed."""
    given = {
        "name": "sums",
        "expected": 2000,
        "scored": 970,
        "limited": 10,
        "failed": 20,
        "running": 40,
        "scores": {"exact": Mean(count=980, total=490.0, squares=490.0)},
        "failures": {"infrastructure": 18, "scorer": 2},
        "limits": {"max_tokens": 10},
        "newest_failure": "timeout: The model \x1b[2Jdid not\nanswer.",
        "spent": Usage(prompt_tokens=1_000_000, completion_tokens=234_567, cost=12.5),
        "turns": 3100,
        "seconds": 500.0,
        "finished": 1000,
        "cost": 50.0,
    }
    return Progress.model_validate(given | fields)


def shown(found: Progress, trouble: str | None = None) -> list[str]:
    return [line.plain for line in lines_of(found, trouble)]


def test_all_that_is_known_is_shown() -> None:
    assert shown(progress(), "No worker has taken it up for 10 s.") == [
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


def test_a_pause_says_why_and_nobody_guesses_when_it_is_done() -> None:
    paused = progress(status="paused", reason="The batch has spent $50.")
    assert shown(paused)[-1] == "  paused    The batch has spent $50."
    assert not [line for line in shown(paused) if "left" in line]
    assert line_of(paused).endswith("; $12.50; paused")


@pytest.mark.parametrize("done", [0, 1, 3, 999, 1998, 1999, 2000])
@pytest.mark.parametrize("failed", [0, 1])
def test_the_bar_is_always_as_long_and_full_only_at_the_end(done: int, failed: int) -> None:
    first = shown(progress(scored=done, limited=0, failed=failed, running=0))[0]
    bar = first.split("  ")[1]
    assert len(bar) == BAR
    assert ("100 %" in first) == (done == 2000)


def test_a_line_has_the_most_of_it() -> None:
    assert line_of(progress()) == (
        "sums: 980 of 2,000 done, 20 failed, 40 running, 960 missing; exact 0.500 ± 0.016; $12.50; "
        "2.0 a second, 8 min 20 s left"
    )


def test_the_end_says_what_is_left_and_what_to_run() -> None:
    none = {"failed": 0, "running": 0}
    whole = progress(scored=1990, **none)
    assert (is_whole(whole), end_of(whole)) == (
        True,
        "All 2,000 have a score, 10 of them at a limit.",
    )
    assert end_of(progress(scored=1970, running=0)) == (
        "20 failed: `perdure batch retry sums` runs what is left."
    )
    assert end_of(progress(scored=1989, **none)) == (
        "1 is missing: `perdure batch retry sums` runs what is left."
    )
    assert end_of(progress(status="stopped")) == (
        "20 failed and 1,000 are missing: `perdure batch retry sums` runs what is left."
    )
    assert not any(map(is_whole, (progress(scored=1989, **none), progress(scored=1970))))


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h")],
)
def test_a_time_has_two_units(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_a_pace_has_the_unit_that_fits() -> None:
    assert pace_of(progress(finished=0)) == ""
    assert pace_of(progress(finished=25)).startswith("3.0 a minute, ")
    assert pace_of(progress(finished=2)).startswith("14.4 an hour, ")


def test_one_score_has_no_error() -> None:
    assert score_of(Mean(count=1, total=1.0, squares=1.0)) == "1.000"
    assert score_of(Mean()) == "-"


def test_a_program_is_told_what_is_derived_too() -> None:
    found = result_of(progress())
    assert (found["done"], found["missing"], found["seconds_left"]) == (980, 960, 500.0)
    assert found["scores"]["exact"]["mean"] == 0.5
    assert (found["spent"]["cost"], found["spent"]["cached_tokens"]) == (12.5, 0)
    counted = ("scored", "limited", "failed", "running", "missing")
    assert found["expected"] == sum(found[name] for name in counted)


def test_a_terminal_has_room_for_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=60, height=8, force_terminal=True)
    monkeypatch.setattr(cli.batch_following, "stdout", screen)
    board = Drawn(Live(console=screen, auto_refresh=False))
    for name in ("one", "two"):
        board.tell(progress(name=name, newest_failure="x" * 500), None)
    drawn = board.drawn.plain.split("\n")
    assert len(drawn) == 7
    assert max(map(len, drawn)) < 60
    assert drawn[0].startswith("one  ━")


def test_a_log_gets_a_line_now_and_then_and_at_once_what_calls_for_somebody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    now = 100.0
    monkeypatch.setattr(cli.batch_following, "note", lambda text, _="": told.append(text))
    monkeypatch.setattr(cli.batch_following, "monotonic", lambda: now)
    board = Lines(Format.text)

    def heard(found: Progress, trouble: Trouble | None = None) -> list[str]:
        told.clear()
        board.tell(found, trouble)
        return [text.partition(" of ")[0] for text in told]

    assert heard(progress(scored=1)) == ["sums: 11"]
    assert heard(progress(scored=2)) == [], "too soon"
    now = 106.0
    assert heard(progress(scored=1)) == [], "nothing new"
    assert heard(progress(scored=3)) == ["sums: 13"]
    paused = progress(scored=3, status="paused", reason="It was paused.")
    assert heard(paused) == ["sums: 13", "sums: It was paused."]
    assert heard(paused) == []
    assert heard(progress(scored=3)) == ["sums: 13", "sums: It goes on."]
    away = Trouble("untaken", "No worker has taken it up for 10 s.")
    assert heard(progress(scored=3), away) == ["sums: No worker has taken it up for 10 s."]
    assert heard(progress(scored=3), away._replace(sentence="... for 15 s.")) == []
