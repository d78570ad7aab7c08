"""A batch from its first sample to its last, on a real server."""

import asyncio
import dataclasses
from collections import Counter
from pathlib import Path

import pytest

import perdure.storage.batches as batch_store
from perdure.models.model import ModelRefused
from perdure.storage.files import FileStore
from tests.harness import ConversationHarness
from tests.workflows.batches import (
    FakeModel,
    batch_folder,
    counts_add_up,
    load_progress,
    make_sums,
    results,
    spec,
    start_batch,
    wait_for,
    with_model,
)


def right(question: str) -> str:
    return str(eval(question))


def right_on_even(question: str) -> str:
    return right(question) if int(question.split()[0]) % 2 == 0 else "?"


@pytest.mark.long
async def test_every_sample_is_attempted_scored_and_stored_once(
    harness: ConversationHarness,
) -> None:
    oracle = FakeModel(right_on_even)
    there, batch = with_model(harness, oracle), spec(concurrency=4)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(9))
        progress = await handle.result()

    counts_add_up(progress)
    assert (progress.status, progress.expected, progress.scored) == ("finished", 9, 9)
    assert progress.scores["exact"].mean == 5 / 9
    assert set(oracle.question_counts.values()) == {1}
    samples = await results(there, batch)
    values = {name: item.attempts[0].scores["exact"].value for name, item in samples.items()}
    assert values == {f"s{n}": n % 2 == 0 for n in range(9)}
    assert samples["s2"].attempts[0].answer == "3"
    assert progress.spent.cost == sum(item.attempts[0].usage.cost for item in samples.values())


class CountingStore(FileStore):
    """A store that counts how often each object is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: Counter[str] = Counter()

    async def read(self, key: str) -> bytes | None:
        self.reads[key] += 1
        return await super().read(key)


async def test_samples_are_read_once_and_their_batch_to_begin_and_to_score(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    store = CountingStore(tmp_path / "counted")
    there = with_model(harness, FakeModel(right))
    there = dataclasses.replace(
        there, resources=dataclasses.replace(there.resources, store=store), folder=tmp_path
    )
    samples = [
        sample.model_copy(update={"turns": ("1 + 1",), "files": {"one": "1"}})
        for sample in make_sums(3)
    ]
    async with there.worker():
        progress = await (await start_batch(there, spec(), samples)).result()
    assert progress.scored == 3
    counts = {key.rpartition("/")[2]: reads for key, reads in store.reads.items()}
    assert counts["000000.jsonl"] == 1
    assert counts["batch.json"] == 1 + 2 * 3  # one is of the check of its code


@pytest.mark.long
async def test_a_worker_keeps_nothing_of_samples_that_are_done(
    harness: ConversationHarness,
) -> None:
    there = with_model(harness, FakeModel(right))
    async with there.worker():
        progress = await (await start_batch(there, spec(concurrency=4), make_sums(5))).result()
    assert progress.scored == 5
    assert there.resources.entries.size == 0


@pytest.mark.long
async def test_runs_hand_over_to_the_next_with_samples_at_work(
    harness: ConversationHarness,
) -> None:
    oracle = FakeModel(right)
    there, batch = with_model(harness, oracle), spec(concurrency=4, epochs=2)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(6), long=30)
        progress = await handle.result()
        first = await handle.describe()

    counts_add_up(progress)
    assert (progress.scored, progress.scores["exact"].mean) == (12, 1.0)
    assert set(oracle.question_counts.values()) == {2}
    assert first.run_id != handle.first_execution_run_id


async def test_failed_attempts_are_retried_and_every_attempt_is_stored(
    harness: ConversationHarness,
) -> None:
    seen: set[str] = set()

    def once_refused(question: str) -> str | ModelRefused:
        if question in seen or question != "1 + 1":
            return right(question)
        seen.add(question)
        return ModelRefused("auth", "The key is wrong.")

    oracle = FakeModel(once_refused)
    there = with_model(harness, oracle)
    batch = spec(retries={"times": 1, "on": ["configuration"]})
    async with there.worker():
        progress = await (await start_batch(there, batch, make_sums(3))).result()

    counts_add_up(progress)
    assert (progress.scored, progress.failed, progress.attempts) == (3, 0, 4)
    attempts = (await results(there, batch))["s1"].attempts
    assert [(attempt.status, attempt.number) for attempt in attempts] == [
        ("failed", 0),
        ("scored", 1),
    ]
    assert attempts[0].failure is not None
    assert attempts[0].failure.kind == "configuration"


async def test_failures_are_no_scores_and_are_run_again_when_asked(
    harness: ConversationHarness,
) -> None:
    broken = True

    def sometimes(question: str) -> str | ModelRefused:
        if broken and question == "1 + 1":
            return ModelRefused("auth", "The key is wrong.")
        return right(question)

    oracle = FakeModel(sometimes)
    there, batch = with_model(harness, oracle), spec()
    async with there.worker():
        first = await (await start_batch(there, batch, make_sums(3))).result()
        broken = False
        second = await (await start_batch(there, batch, make_sums(3))).result()
        third = await (await start_batch(there, batch, make_sums(3), mode="failed")).result()

    assert (first.scored, first.failed, first.scores["exact"].mean) == (2, 1, 1.0)
    assert first.failures == {"configuration": 1}
    assert (second.scored, second.failed, second.missing) == (2, 1, 0)
    assert (third.scored, third.failed, third.missing) == (3, 0, 0)
    assert oracle.question_counts == {"0 + 1": 1, "1 + 1": 2, "2 + 1": 1}


@pytest.mark.long
async def test_a_pause_stops_the_conversations_too_and_nothing_is_lost(
    harness: ConversationHarness,
) -> None:
    oracle = FakeModel(right)
    there, batch = with_model(harness, oracle), spec(concurrency=2)
    async with there.worker():
        oracle.gate.clear()
        handle = await start_batch(there, batch, make_sums(5))
        await wait_for(handle, lambda item: item.running == 2)
        await handle.signal("pause")
        await wait_for(handle, lambda item: item.status == "paused")
        oracle.gate.set()
        await asyncio.sleep(0.5)
        assert (await load_progress(handle)).running + (await load_progress(handle)).done == 2
        await handle.signal("resume")
        progress = await handle.result()

    assert (progress.status, progress.scored) == ("finished", 5)
    assert set(oracle.question_counts.values()) == {1}


@pytest.mark.long
async def test_concurrency_can_be_changed_while_it_runs(harness: ConversationHarness) -> None:
    oracle = FakeModel(right)
    oracle.gate.clear()
    there, batch = with_model(harness, oracle), spec(concurrency=1)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(6))
        await wait_for(handle, lambda item: item.running == 1)
        await handle.execute_update("retune", {"concurrency": 4})
        progress = await wait_for(handle, lambda item: item.running == 4)
        oracle.gate.set()
        assert (await handle.result()).scored == 6

    assert progress.concurrency == 4


@pytest.mark.long
async def test_a_spent_budget_pauses_the_batch_with_a_hint(harness: ConversationHarness) -> None:
    oracle = FakeModel(right, cost=0.10)
    there = with_model(harness, oracle)
    batch = spec(concurrency=2, batch_limits={"cost": 0.45})
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(10))
        paused = await wait_for(handle, lambda item: item.status == "paused")
        assert paused.reason is not None
        assert "retune" in paused.reason
        spent = sum(oracle.question_counts.values()) * 0.10
        assert spent <= 0.45 + 2 * 0.10
        assert paused.missing > 0
        await handle.execute_update("retune", {"cost": 5.0})
        progress = await handle.result()

    assert (progress.status, progress.scored) == ("finished", 10)
    assert set(oracle.question_counts.values()) == {1}


async def test_the_turns_of_a_sample_follow_one_another(harness: ConversationHarness) -> None:
    oracle = FakeModel(right)
    there, batch = with_model(harness, oracle), spec()
    [sample] = make_sums(1)
    sample = sample.model_copy(update={"turns": ("5 + 5", "6 + 6"), "target": ("12",)})
    async with there.worker():
        progress = await (await start_batch(there, batch, [sample])).result()

    assert (progress.scored, progress.turns) == (1, 3)
    assert oracle.question_counts == {"0 + 1": 1, "5 + 5": 1, "6 + 6": 1}
    assert (await results(there, batch))["s0"].attempts[0].scores["exact"].value is True


async def test_files_and_a_command_come_first_and_a_command_may_score(
    harness: ConversationHarness,
) -> None:
    oracle = FakeModel(lambda _: "done")
    there = with_model(harness, oracle)
    batch = spec(scorers=[{"kind": "command", "command": "test \"$(cat made)\" = 'from a file'"}])
    [good, bad] = make_sums(2)
    files = {"files": {"given": "from a file"}}
    good = good.model_copy(update={**files, "setup": "cp given made"})
    bad = bad.model_copy(update={**files, "setup": "echo no such luck >&2; exit 3"})
    async with there.worker():
        progress = await (await start_batch(there, batch, [good, bad])).result()

    assert (progress.scored, progress.failures) == (1, {"sample": 1})
    samples = await results(there, batch)
    assert samples["s0"].attempts[0].scores["command"].value is True
    failure = samples["s1"].attempts[0].failure
    assert failure is not None
    assert "no such luck" in failure.detail
    assert oracle.question_counts == {"0 + 1": 1}


async def test_a_limit_ends_a_sample_and_it_is_scored(harness: ConversationHarness) -> None:
    oracle = FakeModel(right)
    there, batch = with_model(harness, oracle), spec(limits={"tokens": 5})
    [sample] = make_sums(1)
    sample = sample.model_copy(update={"turns": ("5 + 5",)})
    async with there.worker():
        progress = await (await start_batch(there, batch, [sample])).result()

    assert (progress.limited, progress.failed, progress.limits) == (1, 0, {"max_tokens": 1})
    assert progress.scores["exact"].mean == 1.0


async def test_another_workflow_of_the_batch_adopts_running_conversations(
    harness: ConversationHarness,
) -> None:
    oracle = FakeModel(right)
    oracle.gate.clear()
    there, batch = with_model(harness, oracle), spec(concurrency=2)
    async with there.worker():
        handle = await start_batch(there, batch, make_sums(4))
        await wait_for(handle, lambda item: item.running == 2)
        await handle.terminate("lost")
        again = await start_batch(there, batch, make_sums(4))
        await wait_for(again, lambda item: item.running == 2)
        oracle.gate.set()
        progress = await again.result()

    assert (progress.scored, progress.failed) == (4, 0)
    assert set(oracle.question_counts.values()) == {1}


async def test_a_batch_is_scored_again_from_its_logs(harness: ConversationHarness) -> None:
    oracle = FakeModel(lambda question: f"It is {right(question)}.")
    there, batch = with_model(harness, oracle), spec()
    async with there.worker():
        first = await (await start_batch(there, batch, make_sums(3))).result()
        other = batch.model_copy(update={"scorers": spec(scorers=["includes"]).scorers})
        second = await (await start_batch(there, other, make_sums(3), mode="rescore")).result()

    assert (first.scores["exact"].mean, second.scores["includes"].mean) == (0.0, 1.0)
    assert "exact" not in second.scores
    assert sum(oracle.question_counts.values()) == 3
    assert (second.scored, second.attempts) == (3, 3)


@pytest.mark.long
async def test_a_large_batch_is_run_in_shards(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = FakeModel(right, cost=0.10)
    there = with_model(harness, oracle)
    batch = spec(concurrency=6, batch_limits={"cost": 2.0})
    samples = make_sums(15)
    folder = batch_folder(there, batch)
    monkeypatch.setattr(batch_store, "MAX_CHUNK_SAMPLES", 5)
    async with there.worker():
        handle = await start_batch(there, batch, samples, parts=3)
        progress = await handle.result()

    counts_add_up(progress)
    assert (progress.status, progress.scored, progress.expected) == ("finished", 15, 15)
    assert len([result async for result in folder.read_results()]) == 15
    assert set(oracle.question_counts.values()) == {1}
