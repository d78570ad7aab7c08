"""The plan, and the model that keeps to it."""

import json
import random
from pathlib import Path
from typing import Any, get_args

import httpx

from evaluation.spec import batch_of
from models.model import NUMBER_HEADER, PURPOSE_HEADER
from storage.batches import BatchFolder
from storage.datasets.batch import read_batch
from storage.datasets.dataset import read_dataset
from storage.files import FileStore
from tests.batch_chaos import strikes
from tests.batch_chaos.audit import Witness
from tests.batch_chaos.model import Asked, Oracle, serving
from tests.batch_chaos.plan import USER, Kind, expected, planned, written


def test_every_kind_is_in_a_small_batch_too() -> None:
    assert {one.kind for one in planned(40)} == set(get_args(Kind))
    assert planned(60)[:40] == planned(40)


def test_the_file_says_what_is_planned(tmp_path: Path) -> None:
    file = written(tmp_path / "batch", "b", planned(60), "http://127.0.0.1:1/v1", 5)
    batch = read_batch(str(file))
    with read_dataset(batch) as samples:
        assert list(samples) == [one.sample for one in planned(60)]
    assert batch_of(batch.model_dump()).concurrency == 5


def test_strikes_are_of_all_kinds() -> None:
    chance = random.Random(1)
    assert set(strikes.strikes(7, chance)) == set(get_args(strikes.Kind))
    assert len(strikes.strikes(120, chance)) == 120
    assert strikes.strikes(0, chance) == []


async def test_every_call_is_in_the_book_under_the_key_of_its_worker() -> None:
    samples = planned(40)
    plain = next(one for one in samples if one.kind == "plain")
    refused = next(one for one in samples if one.kind == "refused")
    oracle = Oracle(samples)
    async with serving(oracle) as address, httpx.AsyncClient(trust_env=False) as client:
        text = (await _ask(client, address, plain.row["input"], 0)).text
        status = (await _ask(client, address, refused.row["input"], 0)).status_code
        graded = f"[#{plain.number}]\n<answer>\nnot what was said\n</answer>"
        await _ask(client, address, graded, 0, "grade")

    [call] = oracle.paid
    assert (call.asked, call.worker) == (Asked(plain.number, "", 0), "worker-9")
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert {one["id"] for one in chunks} == {call.id}
    said = (one["choices"][0]["delta"].get("content") or "" for one in chunks if one["choices"])
    assert "".join(said) == plain.word
    assert (status, oracle.refused) == (401, {refused.number: 1})
    assert len(oracle.strange) == 1


async def _ask(
    client: httpx.AsyncClient, address: str, text: str, number: int, purpose: str = ""
) -> httpx.Response:
    body: dict[str, Any] = {
        "model": "oracle",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": text}],
    }
    headers = {
        NUMBER_HEADER: str(number),
        PURPOSE_HEADER: purpose,
        "Authorization": "Bearer worker-9",
    }
    return await client.post(f"{address}/chat/completions", json=body, headers=headers)


async def test_a_result_that_is_gone_or_another_is_noticed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder, witness = BatchFolder(store, USER, "b"), Witness(store, "b")
    samples = planned(3)
    for one in samples:
        await folder.record(one.sample, expected(one, "b").attempts[0])
    await witness.look()
    assert len(witness.seen) == 3
    assert await witness.lost() == []

    first = expected(samples[0], "b").attempts[0]
    await folder.rescore(samples[0].sample, first.model_copy(update={"turns": 99}))
    [lost] = await witness.lost()
    assert lost.startswith(f"users/{USER}/batches/b/results/s0000")
