"""What a batch keeps: its samples under a name of their own, a result once."""

import asyncio
from pathlib import Path

import pytest

import storage.batches
from evaluation.result import Attempt
from evaluation.sample import Sample, sample_of
from evaluation.spec import batch_of
from storage.batches import BatchFolder, Kept, batches
from storage.errors import Altered
from storage.files import FileStore
from storage.keys import attempt_key, escaped

NAMES = ["plain", "a/b", "../up", ".", "..", "%2E", "ä ö", "x" * 200, "x" * 199 + "y", "a.b-c_d"]


@pytest.fixture
def folder(tmp_path: Path) -> BatchFolder:
    return BatchFolder(FileStore(tmp_path), "local", "one")


def samples(count: int) -> list[Sample]:
    return [sample_of({"id": f"s{n}", "input": f"{n}?", "target": n}) for n in range(count)]


def attempt(epoch: int = 0, number: int = 0, answer: str = "yes") -> Attempt:
    name = f"c-{epoch}-{number}"
    return Attempt(conversation_id=name, epoch=epoch, number=number, status="scored", answer=answer)


async def test_samples_come_back_in_their_order(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.batches, "MOST_SAMPLES", 3)
    given = samples(8)
    name, count, chunks = await folder.keep_samples(given)
    assert (count, chunks) == (8, 3)
    found = [one for chunk in range(chunks) for one in await folder.chunk(name, chunk)]
    assert found == given
    assert await folder.sample(name, 1, 2) == given[5]
    with pytest.raises(Altered):
        await folder.sample(name, 2, 2)
    assert await folder.keep_samples(given) == (name, 8, 3)
    assert (await folder.keep_samples(given[1:]))[0] != name


async def test_a_large_sample_has_an_object_of_its_own(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.batches, "MOST_BYTES", 2000)
    large = sample_of({"id": "large", "input": "x" * 5000})
    name, _, chunks = await folder.keep_samples([*samples(2), large, *samples(1)])
    sizes = [len(await folder.chunk(name, chunk)) for chunk in range(chunks)]
    assert sizes == [2, 1, 1]


async def test_a_line_within_a_sample_is_no_line_of_its_own(folder: BatchFolder) -> None:
    given = [sample_of({"id": "s", "input": "a\nb\r\nc\u2028d\x85e"}), *samples(1)]
    name, _, _ = await folder.keep_samples(given)
    assert await folder.chunk(name, 0) == given


async def test_a_result_is_written_once_whoever_comes_late(folder: BatchFolder) -> None:
    [sample] = samples(1)
    kept = await asyncio.gather(*(folder.record(sample, attempt(answer=str(n))) for n in range(5)))
    assert len({one.answer for one in kept}) == 1
    found = await folder.result("s0", 0, 0)
    assert found is not None
    assert found.attempts == (kept[0],)
    assert await folder.result("s0", 0, 1) is None


async def test_results_come_once_a_sample_with_every_attempt(
    folder: BatchFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.batches, "AT_ONCE", 2)
    monkeypatch.setattr(storage.batches, "PAGE", 1000)
    given = samples(7)
    for sample in given:
        await folder.record(sample, attempt(1))
        await folder.record(sample, attempt(0, 1))
        await folder.record(sample, attempt(0, 0))
        await folder.keep_grading(sample.id, 0, 0, "judge", b"a reply")
    found = [one async for one in folder.results()]
    assert sorted(one.id for one in found) == [one.id for one in given]
    for one in found:
        assert [(each.epoch, each.number) for each in one.attempts] == [(0, 0), (0, 1), (1, 0)]
        assert await folder.attempts(one.id) == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("name", NAMES)
async def test_any_id_has_a_place(folder: BatchFolder, name: str) -> None:
    sample = sample_of({"id": name, "input": "?"})
    await folder.record(sample, attempt())
    found = await folder.result(name, 0, 0)
    assert found is not None
    assert found.id == name
    assert [one.id async for one in folder.results()] == [name]


def test_no_two_ids_share_a_place() -> None:
    assert len({escaped(name) for name in NAMES}) == len(NAMES)
    assert len({attempt_key(name, 0, 0) for name in NAMES}) == len(NAMES)


async def test_a_reply_of_a_grader_is_kept_once(folder: BatchFolder) -> None:
    assert await folder.grading("s", 0, 0, "judge") is None
    assert await folder.keep_grading("s", 0, 0, "judge", b"first") == b"first"
    assert await folder.keep_grading("s", 0, 0, "judge", b"second") == b"first"
    assert await folder.grading("s", 0, 0, "judge") == b"first"
    assert await folder.grading("s", 0, 1, "judge") is None


async def test_the_batch_itself_is_kept(folder: BatchFolder) -> None:
    assert await folder.kept() is None
    assert await folder.is_fresh()
    table = {"name": "one", "dataset": "d.jsonl", "model": "m", "epochs": 3}
    kept = Kept(spec=batch_of(table), samples="set", count=4, chunks=1)
    await folder.keep(kept)
    assert await folder.kept() == kept
    assert kept.expected == 12
    assert await batches(folder.store, "local") == ["one"]
    [sample] = samples(1)
    await folder.record(sample, attempt())
    assert not await folder.is_fresh()


async def test_what_is_damaged_is_named(folder: BatchFolder) -> None:
    await folder.store.replace("users/local/batches/one/batch.json", b"{")
    with pytest.raises(Altered, match=r"batches/one/batch\.json"):
        await folder.kept()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 201])
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a batch"):
        BatchFolder(FileStore(tmp_path), "local", name)
