"""What counts of a batch whose samples are not what they were."""

from evaluation.sample import Sample, sample_of
from evaluation.spec import batch_of
from storage.batches import BatchFolder, Kept
from storage.counted import counted, sample_ids
from tests.evaluation.results import attempt
from tests.storage.memory import MemoryStore


def sample(name: str) -> Sample:
    return sample_of({"id": name, "input": "1 + 1?"})


async def batch(*names: str, epochs: int = 1) -> tuple[BatchFolder, Kept]:
    """One with these samples, and results of two epochs of `a`, `b` and `c`."""
    table = {"name": "b", "dataset": "d.jsonl", "agent": {"model": {"name": "m"}}, "epochs": epochs}
    folder = BatchFolder(MemoryStore(), "somebody", "b")
    key, count, chunks = await folder.keep_samples([sample(name) for name in names])
    kept = Kept(spec=batch_of(table), samples=key, count=count, chunks=chunks)
    for name in "abc":
        for epoch in (0, 1):
            await folder.record(sample(name), attempt(1, epoch))
    return folder, kept


async def test_a_sample_that_is_no_part_of_the_batch_any_more_does_not_count() -> None:
    folder, kept = await batch("c", "new", "a", epochs=2)
    assert await sample_ids(folder, kept) == ["c", "new", "a"]
    found = {one.id: [it.epoch for it in one.attempts] async for one in counted(folder, kept)}
    assert found == {"a": [0, 1], "c": [0, 1]}


async def test_an_epoch_that_is_not_asked_for_any_more_does_not_count() -> None:
    folder, kept = await batch("a")
    assert [len(one.attempts) async for one in counted(folder, kept)] == [1]
