"""A model that grades: each of its replies is paid for once."""

import asyncio
import json
from typing import Any

import pytest

from perdure.models.model import ContextOverflow, ModelRefused, ModelUnavailable
from tests.activities.batch.scoring import ANSWER, Grader, MemoryFolder, Scene, scene

__all__ = ["scene"]


async def test_a_model_grades_and_its_usage_is_counted(scene: Scene) -> None:
    scene.grader = Grader("It is right.\nGRADE: C")
    other = {"kind": "model_graded", "model": {"name": "judge"}, "name": "by judge"}
    judgement = await scene.score(other)
    assert judgement.scores["by judge"].numbers == {"": 1.0}
    assert (judgement.grading.cost, judgement.grading.prompt_tokens) == (0.25, 10)
    request = scene.grader.requests[0]
    assert request.model.name == "judge"
    assert ANSWER in request.messages[0]["content"]
    assert request.messages[0]["role"] == "user"


async def test_a_reply_is_requested_once_whatever_follows(scene: Scene) -> None:
    scene.grader = Grader("GRADE: C", "GRADE: I")
    first = await scene.score("model_graded", {"kind": "model_graded", "name": "again"})
    scene.grader = Grader()
    again = await scene.score("model_graded", {"kind": "model_graded", "name": "again"})
    assert again == first
    assert again.grading.cost == 0.5
    assert [score.value for score in again.scores.values()] == ["C", "I"]


async def test_without_a_grade_the_model_is_asked_again(scene: Scene) -> None:
    scene.grader = Grader("Well.", "GRADE: Z", "GRADE: C")
    judgement = await scene.score("model_graded")
    assert judgement.scores["model_graded"].value == "C"
    assert judgement.grading.cost == 0.75
    assert [item.number for item in scene.grader.requests] == [0, 1, 2]
    assert {item.model.name for item in scene.grader.requests} == {"the-agent"}
    assert list(scene.shelf.bodies) == ["model_graded", "model_graded~1", "model_graded~2"]


async def test_a_model_that_never_grades_is_a_failure_that_was_paid_for(scene: Scene) -> None:
    scene.grader = Grader("Well.", "Hm.", "So.")
    judgement = await scene.score("model_graded")
    assert judgement.failure is not None
    assert "no grade: 'So.'" in judgement.failure.detail
    assert judgement.grading.cost == 0.75


async def test_no_scorer_takes_the_reply_of_another(scene: Scene) -> None:
    scene.grader = Grader("Well.", "GRADE: C", "GRADE: I")
    names = ({"kind": "model_graded", "name": name} for name in ("judge", "judge~1"))
    judgement = await scene.score(*names)
    assert [score.value for score in judgement.scores.values()] == ["C", "I"]


async def test_a_reply_that_cannot_be_read_is_no_zero(scene: Scene) -> None:
    scene.shelf.bodies["model_graded"] = b"{}"
    assert "no reply of a model" in await scene.failure_detail("model_graded")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ModelRefused("auth", "Set a key."), "configuration"),
        (ModelRefused("content", "No."), "scorer"),
        (ModelRefused("internal", "Odd."), "infrastructure"),
        (ContextOverflow("Too long."), "scorer"),
    ],
    ids=["auth", "content", "internal", "overflow"],
)
async def test_the_refusal_of_a_grading_model_is_a_failure(
    scene: Scene, error: Exception, kind: str
) -> None:
    scene.grader = Grader(error)
    code = getattr(error, "code", "")
    assert await scene.failure_detail("model_graded") == f"{kind} {code} model_graded: {error}"


async def test_an_unavailable_grading_model_is_asked_later(scene: Scene) -> None:
    scene.grader = Grader("Well.", ModelUnavailable("rate_limit", "Busy.", retry_after=7))
    with pytest.raises(ModelUnavailable):
        await scene.score("model_graded")
    scene.grader = Grader("GRADE: C")
    judgement = await scene.score("model_graded")
    assert judgement.scores["model_graded"].value == "C"
    assert judgement.grading.cost == 0.5


async def test_a_reply_is_stored_despite_cancellation(scene: Scene) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def record(*arguments: Any) -> bytes:
        begun.set()
        await go.wait()
        return await MemoryFolder.record_grading(scene.shelf, *arguments)

    scene.shelf.record_grading = record  # type: ignore[method-assign, assignment]
    scene.grader = Grader("GRADE: C")
    task = asyncio.create_task(scene.score("model_graded"))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert json.loads(scene.shelf.bodies["model_graded"])["id"] == "response-1"
