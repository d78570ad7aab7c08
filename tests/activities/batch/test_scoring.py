"""An attempt gets a score or a failure, and never a 0 instead of one."""

from typing import Any

import pytest

from perdure.evaluation.score import TEXT_SCORER_TIMEOUT
from perdure.evaluation.scorers.custom import CUSTOM_SCORER_TIMEOUT
from perdure.evaluation.scorers.model_graded import MAX_GRADING_TRIES
from perdure.evaluation.spec import STORING_TIMEOUT
from perdure.events.usage import Usage
from tests.activities.batch.scoring import ANSWER, SCORERS_MODULE, Scene, batch, command, scene

__all__ = ["scene"]


async def test_without_scorers_there_are_no_scores(scene: Scene) -> None:
    result = await scene.score()
    assert (result.status, result.scores, result.grading) == ("scored", {}, Usage())


async def test_every_scorer_gives_a_score(scene: Scene) -> None:
    pattern = {"kind": "match", "pattern": "([0-9]+)", "name": "number"}
    function = {"kind": "custom", "function": f"{SCORERS_MODULE}:counts", "options": {"times": 3}}
    (scene.folder / "made").touch()
    scorers = (
        "exact",
        "includes",
        pattern,
        function,
        f"{SCORERS_MODULE}:agrees",
        command("test -e made"),
    )
    scores = (await scene.score(*scorers)).scores
    assert {name: score.value for name, score in scores.items()} == {
        "exact": False,
        "includes": True,
        "number": True,
        "counts": 3.0,
        "agrees": False,
        "command": True,
    }
    assert scores["agrees"].explanation == f"said {ANSWER}"


async def test_an_unscorable_attempt_fails_without_any_score(scene: Scene) -> None:
    scene.target = None
    detail = await scene.failure_detail(f"{SCORERS_MODULE}:counts", "exact")
    assert detail.startswith("scorer unscorable exact: The sample 'one' has no target")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("raises", "it raised KeyError: 'nothing'"),
        ("leaves", "it raised SystemExit: no more"),
        ("is_odd", "is no score"),
        ("missing", "has no attribute 'missing'"),
        ("NO_FUNCTION", "TypeError"),
    ],
)
async def test_an_error_in_a_custom_scorer_is_reported(
    scene: Scene, function: str, why: str
) -> None:
    detail = await scene.failure_detail(f"{SCORERS_MODULE}:{function}")
    assert detail.startswith(f"scorer unscorable {function}: ")
    assert why in detail


@pytest.mark.long
@pytest.mark.parametrize("function", ["takes_its_time", "never_ends"])
async def test_a_custom_scorer_has_a_time_limit(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    # The limit is for the function, not for the import of its module on a busy machine.
    assert (await scene.score(f"{SCORERS_MODULE}:counts")).failure is None
    monkeypatch.setattr("perdure.evaluation.scorers.custom.CUSTOM_SCORER_TIMEOUT", 2)
    assert "it took over 2 seconds" in await scene.failure_detail(f"{SCORERS_MODULE}:{function}")


async def test_a_catastrophic_pattern_times_out(scene: Scene) -> None:
    slow = {"kind": "match", "pattern": "(a|aa)+$", "seconds": 0.1}
    assert "took over 0.1 seconds" in await scene.failure_detail(slow, answer="a" * 200 + "b")


async def test_no_secret_is_in_a_score(scene: Scene) -> None:
    judgement = await scene.score(
        command("echo open sesame"), f"{SCORERS_MODULE}:agrees", answer="open sesame"
    )
    assert judgement.scores["command"].explanation == "<secret:DOOR>"
    assert judgement.scores["agrees"].explanation == "said <secret:DOOR>"
    failed = await scene.score(command("echo open sesame; kill -9 $$"))
    assert failed.failure is not None
    assert failed.failure.detail.endswith("<secret:DOOR>")


@pytest.mark.parametrize(
    ("scorers", "seconds", "look"),
    [
        ((), 0.0, False),
        (("exact", "includes"), 2 * TEXT_SCORER_TIMEOUT, False),
        ((command("true", timeout=5), "exact"), 5 + TEXT_SCORER_TIMEOUT, True),
        (("model_graded",), MAX_GRADING_TRIES * 600.0, False),
        (
            ({"kind": "model_graded", "model": {"name": "m", "timeout": 7}},),
            MAX_GRADING_TRIES * 7.0,
            False,
        ),
        ((f"{SCORERS_MODULE}:counts",), CUSTOM_SCORER_TIMEOUT, True),
    ],
)
def test_the_scoring_timeout_is_the_sum_over_all_scorers(
    scorers: tuple[Any, ...], seconds: float, look: bool
) -> None:
    assert batch(*scorers).scoring_timeout == seconds + STORING_TIMEOUT
    assert batch(*scorers).needs_workspace is look
