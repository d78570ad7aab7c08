"""The results that count after the samples of a batch changed."""

from perdure.evaluation.sample import Sample, build_sample
from perdure.evaluation.spec import parse_batch
from perdure.storage.batches import BatchFolder, BatchRecord, list_sample_ids, read_current_results
from tests.evaluation.results import attempt
from tests.storage.memory import MemoryStore


def sample(name: str) -> Sample:
    return build_sample({"id": name, "input": "1 + 1?"})


async def batch(*names: str, epochs: int = 1) -> tuple[BatchFolder, BatchRecord]:
    """Make a batch with these samples, and results of two epochs of `a`, `b` and `c`."""
    table = {"name": "b", "dataset": "d.jsonl", "agent": {"model": {"name": "m"}}, "epochs": epochs}
    folder = BatchFolder(MemoryStore(), "somebody", "b")
    key, count, chunks = await folder.write_samples([sample(name) for name in names])
    record = BatchRecord(spec=parse_batch(table), samples=key, count=count, chunks=chunks)
    for name in "abc":
        for epoch in (0, 1):
            await folder.record_attempt(sample(name), attempt(1, epoch))
    return folder, record


async def test_a_sample_that_left_the_batch_does_not_count() -> None:
    folder, record = await batch("c", "new", "a", epochs=2)
    assert await list_sample_ids(folder, record) == ["c", "new", "a"]
    epochs_by_sample = {
        result.id: [it.epoch for it in result.attempts]
        async for result in read_current_results(folder, record)
    }
    assert epochs_by_sample == {"a": [0, 1], "c": [0, 1]}


async def test_an_epoch_beyond_the_spec_does_not_count() -> None:
    folder, record = await batch("a")
    assert [len(result.attempts) async for result in read_current_results(folder, record)] == [1]
