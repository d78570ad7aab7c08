"""The plan, and the model that keeps to it."""

import json
import random
from pathlib import Path
from typing import Any, get_args

import httpx

from perdure.datasets.batch import read_batch
from perdure.datasets.dataset import read_dataset
from perdure.evaluation.spec import parse_batch
from perdure.models.model import NUMBER_HEADER, PURPOSE_HEADER
from perdure.storage.batches import BatchFolder
from perdure.storage.files import FileStore
from reliability.batch_chaos import strikes
from reliability.batch_chaos.audit import ResultMonitor
from reliability.batch_chaos.model import BatchModelServer, RequestId, serve
from reliability.batch_chaos.plan import (
    USER,
    SampleKind,
    expected_result,
    plan_samples,
    write_batch,
)


def test_a_small_batch_has_samples_of_every_kind() -> None:
    assert {sample.kind for sample in plan_samples(40)} == set(get_args(SampleKind))
    assert plan_samples(60)[:40] == plan_samples(40)


def test_the_batch_file_has_the_planned_samples(tmp_path: Path) -> None:
    file = write_batch(tmp_path / "batch", "b", plan_samples(60), "http://127.0.0.1:1/v1", 5)
    batch = read_batch(str(file))
    with read_dataset(batch) as samples:
        assert list(samples) == [sample.sample for sample in plan_samples(60)]
    assert parse_batch(batch.model_dump()).concurrency == 5


def test_strikes_are_of_all_kinds() -> None:
    chance = random.Random(1)
    assert set(strikes.plan_strikes(7, chance)) == set(get_args(strikes.StrikeKind))
    assert len(strikes.plan_strikes(120, chance)) == 120
    assert strikes.plan_strikes(0, chance) == []


async def test_every_call_is_recorded_under_the_key_of_its_worker() -> None:
    samples = plan_samples(40)
    plain = next(sample for sample in samples if sample.kind == "plain")
    refused = next(sample for sample in samples if sample.kind == "refused")
    oracle = BatchModelServer(samples)
    async with serve(oracle) as address, httpx.AsyncClient(trust_env=False) as client:
        text = (await _ask(client, address, plain.row["input"], 0)).text
        status = (await _ask(client, address, refused.row["input"], 0)).status_code
        graded = f"[#{plain.number}]\n<answer>\nnot what was said\n</answer>"
        await _ask(client, address, graded, 0, "grade")

    [call] = oracle.paid
    assert (call.request, call.worker) == (RequestId(plain.number, "", 0), "worker-9")
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert {chunk["id"] for chunk in chunks} == {call.id}
    pieces = (
        chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]
    )
    assert "".join(pieces) == plain.word
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


async def test_a_deleted_or_changed_result_is_noticed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder, witness = BatchFolder(store, USER, "b"), ResultMonitor(store, "b")
    samples = plan_samples(3)
    for sample in samples:
        await folder.record_attempt(sample.sample, expected_result(sample, "b").attempts[0])
    await witness.observe()
    assert len(witness.seen) == 3
    assert await witness.changed_results() == []

    first = expected_result(samples[0], "b").attempts[0]
    await folder.replace_attempt(samples[0].sample, first.model_copy(update={"turns": 99}))
    [lost] = await witness.changed_results()
    assert lost.startswith(f"users/{USER}/batches/b/results/s0000")
