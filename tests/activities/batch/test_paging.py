"""The attempts that a batch still has to make, and the count of those it has made."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.batch.paging import BatchActivities
from perdure.activities.support.resources import Resources
from perdure.evaluation.messages import (
    AttemptPageRequest,
    BatchMode,
    CountRequest,
    SamplePosition,
    SampleSet,
)
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.sample import build_sample
from perdure.evaluation.score import Score
from perdure.models.router import ModelRouter
from perdure.storage.batches import BatchFolder
from perdure.storage.files import FileStore

ONE, TWO = (build_sample({"id": name, "input": "Answer.", "target": "4"}) for name in "ab")
BROKEN = AttemptFailure(kind="infrastructure", code="internal", detail="It broke.")


def attempt(epoch: int, number: int, *, failed: bool) -> AttemptResult:
    plain = AttemptResult(conversation_id="c", epoch=epoch, number=number, status="scored")
    if failed:
        return plain.model_copy(update={"status": "failed", "failure": BROKEN})
    return plain.model_copy(update={"scores": {"exact": Score(value=1)}})


async def open_batch(folder: Path) -> tuple[BatchActivities, SampleSet]:
    """Store two samples of two epochs: a failure that was retried, another, and nothing."""
    resources = Resources(FileStore(folder / "store"), ModelRouter(), folder / "home", home="q@m")
    batch = BatchFolder(resources.store, "local", "sums")
    samples, _, _ = await batch.write_samples([ONE, TWO])
    await batch.record_attempt(ONE, attempt(0, 0, failed=True))
    await batch.record_attempt(ONE, attempt(0, 1, failed=False))
    await batch.record_attempt(ONE, attempt(1, 0, failed=True))
    temporal: Any = None  # neither asks Temporal
    activities = BatchActivities(resources, temporal)
    return activities, SampleSet(name="sums", user_id="local", samples=samples, epochs=2)


@pytest.mark.parametrize(
    ("mode", "attempts"),
    [
        ("missing", [("b", 0, 0), ("b", 1, 0)]),
        ("failed", [("a", 1, 1), ("b", 0, 0), ("b", 1, 0)]),
        ("rescore", [("a", 0, 1), ("a", 1, 0)]),
    ],
)
async def test_a_page_lists_the_attempts_that_a_mode_asks_for(
    tmp_path: Path, mode: BatchMode, attempts: list[tuple[str, int, int]]
) -> None:
    activities, samples = await open_batch(tmp_path)
    request = AttemptPageRequest(of=samples, place=SamplePosition(chunk=0), mode=mode)
    page = await ActivityEnvironment().run(activities.load_page, request)
    assert [(job.sample, job.epoch, job.number) for job in page.jobs] == attempts


async def test_only_the_newest_attempt_of_an_epoch_counts_and_all_are_paid(tmp_path: Path) -> None:
    activities, samples = await open_batch(tmp_path)
    request = CountRequest(of=samples, first=0, end=1)
    progress = await ActivityEnvironment().run(activities.count_results, request)
    counts = (progress.expected, progress.done, progress.failed, progress.attempts)
    assert counts == (4, 1, 1, 3)
