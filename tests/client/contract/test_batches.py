"""Batches of the library's own client, and of one of a gateway."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from perdure.client.batch.batches import Batches
from perdure.client.batch.protocol import BatchClient
from perdure.client.http.client import HttpClient
from perdure.errors import Conflict, Invalid, NotFound
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.storage.batches import list_sample_ids, read_current_results
from tests.client.contract.clients import Clients
from tests.harness import text_answer

ROWS = [{"id": text, "input": f"What is {text}?", "target": text} for text in ("a", "b", "c")]


def batches_of(client: Any) -> BatchClient:
    return Batches.from_client(client)


def make_spec(clients: Clients, *answers: str, **changes: Any) -> BatchSpec:
    path = clients.harness.folder / f"{uuid4()}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    agent = clients.harness.spec(*map(text_answer, answers), tools=("finish",))
    name = f"sums-{clients.harness.client.task_queue}"  # the tests share a Temporal server
    fields = {"name": name, "dataset": str(path), "scorers": ["includes"], **changes}
    return parse_batch({**fields, "agent": agent.model_dump(mode="json", exclude_unset=True)})


@pytest.mark.long
async def test_a_batch_runs_to_its_scores_and_is_read(clients: Clients) -> None:
    batches = batches_of(clients.anna)
    async with clients.harness.worker():
        spec = make_spec(clients, "a and b")
        handle = await batches.run(spec, options={"file": "sums.toml"})
        assert not handle.attached
        progress = await handle.wait_until_finished()
        assert (progress.status, progress.scored, progress.expected) == ("finished", 3, 3)
        assert progress.scores["includes"].mean == pytest.approx(2 / 3)
        assert (await handle.status()).scored == 3
        assert await handle.diagnose() is None
        record = await handle.load_record()
        assert (record.count, record.expected_attempts) == (3, 3)
        assert (record.spec.agent, record.spec.scorers) == (spec.agent, spec.scorers)
        assert await list_sample_ids(handle.folder, record) == ["a", "b", "c"]
        results = [result async for result in read_current_results(handle.folder, record)]
        assert sorted(result.id for result in results) == ["a", "b", "c"]
        [first] = [result for result in results if result.id == "a"]
        assert await handle.folder.list_attempts("a") == [(0, 0)]
        assert await handle.folder.read_result("a", 0, 0) == first
        assert await handle.folder.read_result("a", 0, 1) is None
        log = handle.folder.open_log(first.attempts[0].conversation_id)
        assert await log.exists()
        assert [sample.id for sample in await handle.folder.read_chunk(record.samples, 0)] == [
            *("a", "b", "c")
        ]
        assert await batches.list_names() == [spec.name]
        again = await batches.rerun(spec.name, "rescore")
        assert (await again.wait_until_finished()).scored == 3


@pytest.mark.long
async def test_a_batch_is_paused_retuned_and_attached_to(clients: Clients) -> None:
    batches = batches_of(clients.anna)
    spec = make_spec(clients, "a", concurrency=1)
    handle = await batches.run(spec)  # no worker takes it up yet
    assert (await batches.run(spec)).attached
    assert (await batches.rerun(spec.name, "missing")).attached
    with pytest.raises(Conflict, match="is running with another"):
        await batches.run(make_spec(clients, "a", concurrency=2))
    await handle.pause()
    async with clients.harness.worker():
        changed = await handle.update_limits(LimitsUpdate(concurrency=3))
        assert changed.concurrency == 3
        await handle.resume()
        assert (await handle.wait_until_finished()).status == "finished"
        with pytest.raises(Conflict, match="is not running"):
            await handle.pause()


async def test_impossible_batches_are_refused_with_a_reason(
    clients: Clients, tmp_path: Path
) -> None:
    batches = batches_of(clients.anna)
    with pytest.raises(NotFound, match=r"^There is no batch 'sums'") as unknown:
        await batches.get("sums")
    assert unknown.value.hint == "There is none yet."
    with pytest.raises(Invalid, match="is not the name of a batch"):
        batches.batch("a/b")
    with pytest.raises(Invalid, match="there is no key 'scorer'"):
        await batches.run({"name": "sums", "dataset": "x.jsonl", "model": "m", "scorer": []})
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(Invalid, match=r"rows\.jsonl:1"):
        await batches.run({"name": "sums", "dataset": str(path), "model": "m"})
    for call in (batches.batch("sums").status, batches.batch("sums").resume):
        with pytest.raises(NotFound, match=r"^There is no batch sums"):
            await call()


async def test_a_batch_of_the_same_name_is_another_users_own(clients: Clients) -> None:
    spec = make_spec(clients, "a")
    await batches_of(clients.anna).run(spec)
    assert await batches_of(clients.ben).list_names() == []
    with pytest.raises(NotFound):
        await batches_of(clients.ben).get(spec.name)
    assert isinstance(clients.ben, HttpClient) == (type(batches_of(clients.ben)) is not Batches)
