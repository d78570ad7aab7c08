"""Storage of a batch: its samples as a named set, each result once."""

import asyncio
from pathlib import Path

import pytest

import perdure.storage.batches as batch_store
from perdure.evaluation.result import AttemptResult
from perdure.evaluation.sample import Sample, build_sample
from perdure.evaluation.spec import parse_batch
from perdure.storage.batches import BatchFolder, BatchRecord, list_batches
from perdure.storage.errors import Altered
from perdure.storage.files import FileStore
from perdure.storage.keys import attempt_key, escape_name

NAMES = ["plain", "a/b", "../up", ".", "..", "%2E", "ä ö", "x" * 200, "x" * 199 + "y", "a.b-c_d"]


@pytest.fixture
def folder(tmp_path: Path) -> BatchFolder:
    return BatchFolder(FileStore(tmp_path), "local", "one")


def samples(count: int) -> list[Sample]:
    return [build_sample({"id": f"s{n}", "input": f"{n}?", "target": n}) for n in range(count)]


def attempt(epoch: int = 0, number: int = 0, answer: str = "yes") -> AttemptResult:
    name = f"c-{epoch}-{number}"
    return AttemptResult(
        conversation_id=name, epoch=epoch, number=number, status="scored", answer=answer
    )


async def test_samples_come_back_in_their_order(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_store, "MAX_CHUNK_SAMPLES", 3)
    dataset = samples(8)
    name, count, chunks = await folder.write_samples(dataset)
    assert (count, chunks) == (8, 3)
    contents = [item for chunk in range(chunks) for item in await folder.read_chunk(name, chunk)]
    assert contents == dataset
    assert await folder.read_sample(name, 1, 2) == dataset[5]
    with pytest.raises(Altered):
        await folder.read_sample(name, 2, 2)
    assert await folder.write_samples(dataset) == (name, 8, 3)
    assert (await folder.write_samples(dataset[1:]))[0] != name


async def test_a_large_sample_has_an_object_of_its_own(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_store, "MAX_CHUNK_BYTES", 2000)
    large = build_sample({"id": "large", "input": "x" * 5000})
    name, _, chunks = await folder.write_samples([*samples(2), large, *samples(1)])
    sizes = [len(await folder.read_chunk(name, chunk)) for chunk in range(chunks)]
    assert sizes == [2, 1, 1]


async def test_a_line_break_in_a_sample_does_not_split_it(folder: BatchFolder) -> None:
    dataset = [build_sample({"id": "s", "input": "a\nb\r\nc\u2028d\x85e"}), *samples(1)]
    name, _, _ = await folder.write_samples(dataset)
    assert await folder.read_chunk(name, 0) == dataset


async def test_a_late_result_does_not_replace_the_first(folder: BatchFolder) -> None:
    [sample] = samples(1)
    attempts = await asyncio.gather(
        *(folder.record_attempt(sample, attempt(answer=str(n))) for n in range(5))
    )
    assert len({item.answer for item in attempts}) == 1
    result = await folder.read_result("s0", 0, 0)
    assert result is not None
    assert result.attempts == (attempts[0],)
    assert await folder.read_result("s0", 0, 1) is None


async def test_results_come_once_a_sample_with_every_attempt(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_store, "PARALLEL_REQUESTS", 2)
    dataset = samples(7)
    for sample in dataset:
        await folder.record_attempt(sample, attempt(1))
        await folder.record_attempt(sample, attempt(0, 1))
        await folder.record_attempt(sample, attempt(0, 0))
        await folder.record_grading(sample.id, 0, 0, "judge", b"a reply")
    results = [result async for result in folder.read_results()]
    assert sorted(item.id for item in results) == [item.id for item in dataset]
    for item in results:
        assert [(each.epoch, each.number) for each in item.attempts] == [(0, 0), (0, 1), (1, 0)]
        assert await folder.list_attempts(item.id) == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("name", NAMES)
async def test_any_sample_id_has_a_key(folder: BatchFolder, name: str) -> None:
    sample = build_sample({"id": name, "input": "?"})
    await folder.record_attempt(sample, attempt())
    sample_result = await folder.read_result(name, 0, 0)
    assert sample_result is not None
    assert sample_result.id == name
    assert [result.id async for result in folder.read_results()] == [name]


def test_two_sample_ids_never_share_a_key() -> None:
    assert len({escape_name(name) for name in NAMES}) == len(NAMES)
    assert len({attempt_key(name, 0, 0) for name in NAMES}) == len(NAMES)


async def test_a_graders_reply_is_recorded_once(folder: BatchFolder) -> None:
    assert await folder.read_grading("s", 0, 0, "judge") is None
    assert await folder.record_grading("s", 0, 0, "judge", b"first") == b"first"
    assert await folder.record_grading("s", 0, 0, "judge", b"second") == b"first"
    assert await folder.read_grading("s", 0, 0, "judge") == b"first"
    assert await folder.read_grading("s", 0, 1, "judge") is None


async def test_the_record_of_a_batch_is_read_back(folder: BatchFolder) -> None:
    assert await folder.load() is None
    assert await folder.is_fresh()
    table = {"name": "one", "dataset": "d.jsonl", "model": "m", "epochs": 3}
    record = BatchRecord(spec=parse_batch(table), samples="set", count=4, chunks=1)
    await folder.save(record)
    assert await folder.load() == record
    assert record.expected_attempts == 12
    assert await list_batches(folder.store, "local") == ["one"]
    [sample] = samples(1)
    await folder.record_attempt(sample, attempt())
    assert not await folder.is_fresh()


async def test_a_damaged_object_of_a_batch_is_named(folder: BatchFolder) -> None:
    await folder.store.replace("users/local/batches/one/batch.json", b"{")
    with pytest.raises(Altered, match=r"batches/one/batch\.json"):
        await folder.load()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 201])
def test_a_name_that_could_leave_its_prefix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a batch"):
        BatchFolder(FileStore(tmp_path), "local", name)
