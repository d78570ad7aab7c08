"""A batch pauses where going on would only cost, and says what to do."""

import uuid
from pathlib import Path

import pytest

from perdure.models.model import ModelRefused
from perdure.references import add_user_folder
from tests.harness import ConversationHarness
from tests.workflows.batches import (
    FakeModel,
    counts_add_up,
    make_sums,
    spec,
    start_batch,
    wait_for,
    with_model,
)


def right(question: str) -> str:
    return str(eval(question))


@pytest.mark.long
async def test_a_batch_pauses_when_every_attempt_fails(harness: ConversationHarness) -> None:
    oracle = FakeModel(lambda _: ModelRefused("auth", "The key is wrong."))
    there, batch = with_model(harness, oracle), spec(concurrency=2)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(40))
        paused = await wait_for(handle, lambda item: item.status == "paused" and not item.running)
        assert paused.reason is not None
        assert "The key is wrong." in paused.reason
        assert paused.missing > 20
        await handle.cancel()
        progress = await handle.result()

    counts_add_up(progress)
    assert progress.status == "stopped"


def module_of(folder: Path, source: str) -> str:
    """Write a module that only this test has; return its name."""
    name = f"scoring_{uuid.uuid4().hex[:12]}"
    add_user_folder(folder)
    (folder / f"{name}.py").write_text(source)
    return name


@pytest.mark.long
async def test_a_scorer_that_no_worker_can_load_pauses_the_batch_before_any_call(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    oracle, name = FakeModel(right), f"scoring_{uuid.uuid4().hex[:12]}"
    add_user_folder(tmp_path)
    there, batch = with_model(harness, oracle), spec(scorers=[f"{name}:agrees"], concurrency=4)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(12))
        paused = await wait_for(handle, lambda item: item.blocked)
        assert (paused.status, paused.attempts, paused.running) == ("paused", 0, 0)
        assert paused.reason is not None
        assert f"'{name}' cannot be found" in paused.reason
        assert str(tmp_path) in paused.reason
        assert f"`perdure batch resume {batch.name}`" in paused.reason
        assert not oracle.question_counts
        (tmp_path / f"{name}.py").write_text("def agrees(sample, outcome): return True\n")
        await handle.signal("resume")
        progress = await handle.result()
    assert (progress.scored, progress.blocked) == (12, False)
    assert oracle.question_counts.total() == 12


@pytest.mark.long
async def test_a_scorer_that_always_fails_pauses_the_batch_and_a_rescore_is_advised(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    name = module_of(tmp_path, "def breaks(sample, outcome): return sample.nothing\n")
    oracle = FakeModel(right)
    there = with_model(harness, oracle)
    batch = spec(scorers=[f"{name}:breaks"], concurrency=2, pause_after=4)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(40), pause_after=4)
        paused = await wait_for(handle, lambda item: item.blocked and not item.running)
        assert paused.reason is not None
        assert "4 attempts in a row failed" in paused.reason
        assert f"perdure batch rescore {batch.name}" in paused.reason
        assert "perdure batch retry" not in paused.reason
        assert paused.missing > 30
        await handle.cancel()
        await handle.result()


@pytest.mark.long
async def test_a_scorer_that_fails_more_often_than_not_pauses_the_batch(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    source = "def breaks(sample, outcome): return int(sample.id[1:]) % 3 == 0 or sample.nothing\n"
    name = module_of(tmp_path, source)
    there = with_model(harness, FakeModel(right))
    async with there.worker():
        batch = spec(scorers=[f"{name}:breaks"], concurrency=1)
        handle = await start_batch(there, batch, make_sums(60), pause_after=5)
        paused = await wait_for(handle, lambda item: item.blocked and not item.running)
        assert paused.reason is not None
        assert "7 of 11 attempts failed" in paused.reason
        await handle.signal("resume")
        await wait_for(handle, lambda item: item.attempts >= 20)
        await handle.cancel()
        await handle.result()
