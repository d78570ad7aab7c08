"""What scorers say of an attempt: a score, or why there is none, and never a 0 in its stead."""

from typing import Any

import pytest

from activities.judging import Judgement
from evaluation.patience import BESIDE, CUSTOM, TEXT, TRIES, looks, patience
from tests.activities.judging import AT_HAND, SAID, Scene, batch, command, scene

__all__ = ["scene"]


async def test_without_scorers_there_are_no_scores(scene: Scene) -> None:
    assert await scene.judged() == Judgement()


async def test_every_scorer_has_a_say(scene: Scene) -> None:
    pattern = {"kind": "match", "pattern": "([0-9]+)", "name": "number"}
    function = {"kind": "custom", "function": f"{AT_HAND}:counts", "options": {"times": 3}}
    (scene.folder / "made").touch()
    scorers = ("exact", "includes", pattern, function, f"{AT_HAND}:agrees", command("test -e made"))
    scores = (await scene.judged(*scorers)).scores
    assert {name: score.value for name, score in scores.items()} == {
        "exact": False,
        "includes": True,
        "number": True,
        "counts": 3.0,
        "agrees": False,
        "command": True,
    }
    assert scores["agrees"].explanation == f"said {SAID}"


async def test_what_cannot_be_scored_is_a_failure_and_no_other_score_is_kept(scene: Scene) -> None:
    scene.target = None
    told = await scene.why(f"{AT_HAND}:counts", "exact")
    assert told.startswith("scorer unscorable exact: The sample 'one' has no target")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("raises", "it raised KeyError: 'nothing'"),
        ("leaves", "it raised SystemExit: no more"),
        ("is_odd", "is no score"),
        ("missing", "cannot be imported"),
        ("NO_FUNCTION", "TypeError"),
    ],
)
async def test_a_function_that_goes_wrong_is_told_of(scene: Scene, function: str, why: str) -> None:
    told = await scene.why(f"{AT_HAND}:{function}")
    assert told.startswith(f"scorer unscorable {function}: ")
    assert why in told


@pytest.mark.parametrize("function", ["takes_its_time", "never_ends"])
async def test_a_function_has_so_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr("evaluation.patience.CUSTOM", 0.2)
    assert "it took over 0.2 seconds" in await scene.why(f"{AT_HAND}:{function}")


async def test_a_pattern_without_end_is_no_score(scene: Scene) -> None:
    slow = {"kind": "match", "pattern": "(a|aa)+$", "seconds": 0.1}
    assert "took over 0.1 seconds" in await scene.why(slow, said="a" * 200 + "b")


async def test_no_secret_is_in_a_score(scene: Scene) -> None:
    judgement = await scene.judged(
        command("echo open sesame"), f"{AT_HAND}:agrees", said="open sesame"
    )
    assert judgement.scores["command"].explanation == "<secret:DOOR>"
    assert judgement.scores["agrees"].explanation == "said <secret:DOOR>"
    failed = await scene.judged(command("echo open sesame; kill -9 $$"))
    assert failed.failure is not None
    assert failed.failure.detail.endswith("<secret:DOOR>")


@pytest.mark.parametrize(
    ("scorers", "seconds", "look"),
    [
        ((), 0.0, False),
        (("exact", "includes"), 2 * TEXT, False),
        ((command("true", timeout=5), "exact"), 5 + TEXT, True),
        (("model_graded",), TRIES * 600.0, False),
        (({"kind": "model_graded", "model": {"name": "m", "timeout": 7}},), TRIES * 7.0, False),
        ((f"{AT_HAND}:counts",), CUSTOM, True),
    ],
)
def test_patience_is_that_of_all_scorers(
    scorers: tuple[Any, ...], seconds: float, look: bool
) -> None:
    assert patience(batch(*scorers)) == seconds + BESIDE
    assert looks(batch(*scorers)) is look
