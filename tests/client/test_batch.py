"""A batch before it runs, while it runs, and when there is nobody to ask but the store."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.service import RPCError

import client.batch_handle
from client.batch import Batches, parts_of
from client.batch_counts import counts
from client.batch_handle import BatchHandle
from client.errors import Conflict, Invalid, NotFound, TimedOut
from evaluation.result import Attempt, Failure
from evaluation.running import Retune
from evaluation.sample import conversation_id
from evaluation.score import Score
from evaluation.spec import BatchSpec, batch_of
from events.usage import Usage
from storage.batches import Kept
from tests.house import House, says

Rows = list[dict[str, Any]]

ROWS: Rows = [{"id": one, "input": f"What is {one}?", "target": one} for one in ("a", "b", "c")]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there to answer in most of these tests."""
    monkeypatch.setattr(client.batch_handle, "ANSWER", client.batch_handle.ANSWER / 20)


@pytest.fixture
def batches(house: House) -> Batches:
    return Batches.of(house.client)


@pytest_asyncio.fixture(autouse=True)
async def _left_alone(batches: Batches) -> AsyncIterator[None]:
    """What a test has started, no other one finds running."""
    yield
    with contextlib.suppress(RPCError):
        await terminate(batches.batch("sums"))


@pytest_asyncio.fixture
async def ended(batches: Batches, house: House) -> BatchHandle:
    """A batch that was begun and whose workflow is gone."""
    handle = await batches.run(spec(house.folder))
    await terminate(handle)
    return handle


def spec(folder: Path, rows: Rows = ROWS, **changes: Any) -> BatchSpec:
    path = folder / f"{uuid4()}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    given = {
        "name": "sums",
        "dataset": str(path),
        "agent": {"model": {"name": "scripted:none.json"}, "tools": ["finish"]},
        "scorers": ["includes"],
    }
    return batch_of({**given, **changes})


async def terminate(handle: BatchHandle) -> None:
    await handle.handle.terminate()


async def test_a_batch_is_in_the_store_before_it_is_started(batches: Batches, house: House) -> None:
    batch = spec(house.folder, epochs=2, batch_limits={"tokens": 900})
    handle = await batches.run(batch, options={"file": "sums.toml"})
    kept = await handle.kept()
    assert (kept.spec, kept.count, kept.chunks, kept.expected) == (batch, 3, 1, 6)
    assert kept.options == {"file": "sums.toml", "mode": "missing"}
    assert [one.id for one in await handle.folder.chunk(kept.samples, 0)] == ["a", "b", "c"]
    assert await handle.is_running()
    assert not handle.attached
    found = await handle.status()
    assert (found.status, found.expected, found.missing, found.tokens) == ("running", 6, 6, 900)
    assert "No worker" in (found.reason or "")
    with pytest.raises(TimedOut, match="No worker took the change"):
        await handle.retune(Retune(concurrency=3), wait=0.1)


async def test_what_runs_already_is_attached_to_if_it_is_the_same(
    batches: Batches, house: House
) -> None:
    handle = await batches.run(spec(house.folder))
    before = await handle.kept()
    assert (await batches.run(spec(house.folder))).attached
    for changed, said in (
        (spec(house.folder, concurrency=3), "another concurrency"),
        (spec(house.folder, scorers=["exact"], epochs=2), "another epochs, scorers"),
        (spec(house.folder, ROWS[:2]), "another dataset"),
        (spec(house.folder, [*ROWS, {"input": "More?"}]), "another dataset"),
    ):
        with pytest.raises(Conflict, match=said) as refused:
            await batches.run(changed)
        assert "perdure batch retune sums" in refused.value.hint
    with pytest.raises(Conflict, match="scoring again is not what it does"):
        await batches.again("sums", "rescore")
    assert await handle.kept() == before, "what runs is not changed behind its back"


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        (ROWS, {"agent": {"model": "scripted:none.json", "tools": ["think"]}}, "another tools"),
        (ROWS, {"agent": {"model": "openai/other", "tools": ["finish"]}}, "another model"),
        ([{**ROWS[0], "input": "Else?"}], {}, "'a' is not what it was .* asks for something else"),
        ([{**ROWS[0], "files": {"x": "y"}}], {}, "'a' is not what it was .* has other files"),
        ([{**ROWS[0], "target": "z"}], {}, "'a' is not what it was .* its target"),
    ],
)
async def test_what_contradicts_an_earlier_run_is_refused(
    batches: Batches, house: House, ended: BatchHandle, rows: Rows, changes: Any, said: str
) -> None:
    before = await ended.kept()
    with pytest.raises(Conflict, match=said):
        await batches.run(spec(house.folder, rows, **changes))
    assert (await ended.kept(), await ended.is_running()) == (before, False)


@pytest.mark.usefixtures("ended")
async def test_more_samples_and_other_limits_contradict_nothing(
    batches: Batches, house: House
) -> None:
    more = [{"input": "And more?"}, ROWS[2]]
    agent = {"model": {"name": "scripted:none.json", "api_base": "http://127.0.0.1:9"}}
    limits = {"limits": {"max_iterations": 3}, "tools": ["finish"]}
    batch = spec(house.folder, more, concurrency=2, epochs=3, agent={**agent, **limits})
    handle = await batches.run(batch)
    assert (await handle.kept()).expected == 6
    await terminate(handle)
    with pytest.raises(Conflict, match="'a' is not what it was"):
        await batches.run(spec(house.folder, [{**ROWS[0], "input": "Else?"}]))


@pytest.mark.usefixtures("ended")
async def test_targets_may_be_mended_where_samples_are_scored_again(
    batches: Batches, house: House
) -> None:
    mended = [{**ROWS[0], "target": "z"}]
    with pytest.raises(Conflict) as refused:
        await batches.run(spec(house.folder, mended))
    assert "perdure batch rescore sums FILE" in refused.value.hint
    await terminate(await batches.run(spec(house.folder, mended), "rescore"))
    await terminate(await batches.run(spec(house.folder, mended)))
    other = [{**mended[0], "input": "Else?"}]
    with pytest.raises(Conflict, match="asks for something else"):
        await batches.run(spec(house.folder, other), "rescore")


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        ([*ROWS, {"id": "d"}], {}, r"\.jsonl:4: there is no column 'input'"),
        ([*ROWS, ROWS[0]], {}, r"\.jsonl:4: the id 'a' is that of line 1 too"),
        ([], {}, "has no samples"),
        (ROWS, {"ids": ["d"]}, "has no sample 'd'"),
        (ROWS, {"scorers": ["includes", "no_such_module:judge"]}, "scorers.1: .* cannot be"),
    ],
)
async def test_what_cannot_be_run_is_told_before_anything_is_started(
    batches: Batches, house: House, rows: Rows, changes: Any, said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        await batches.run(spec(house.folder, rows, **changes))
    assert await batches.names() == []


async def test_who_is_not_there_is_told_who_is(batches: Batches, ended: BatchHandle) -> None:
    with pytest.raises(NotFound, match="There is no batch 'other'") as unknown:
        await batches.found("other")
    assert unknown.value.hint == "There are sums."
    with pytest.raises(Conflict, match="is not running"):
        await ended.pause()
    with pytest.raises(NotFound):
        await batches.batch("other").resume()
    with pytest.raises(Invalid, match="is not the name of a batch"):
        batches.batch("../sums")


async def test_the_store_counts_where_no_workflow_does(house: House, ended: BatchHandle) -> None:
    folder, kept = ended.folder, await ended.kept()
    a, b, c = await folder.chunk(kept.samples, 0)
    failure = Failure(kind="infrastructure", code="timeout", detail="It took too long.")
    await folder.record(a, _attempt("a", scores={"includes": Score(value=1.0)}))
    await folder.record(b, _attempt("b", status="failed", failure=failure))
    await folder.record(c.model_copy(update={"id": "left"}), _attempt("left"))
    found = await ended.finished()
    assert (found.status, found.scored, found.failed, found.missing) == ("stopped", 1, 1, 1)
    assert found.reason == "its workflow was terminated in Temporal"
    assert (found.attempts, found.spent.cost) == (2, 0.5), "what is no sample any more is not here"
    assert found.newest_failure == "timeout: It took too long."
    away = Batches(house.client.store)
    assert await away.batch("sums").counted() == await counts(folder, kept)
    assert "Temporal does not answer" in ((await away.batch("sums").status()).reason or "")
    scored = {"scores": {"includes": Score(value=0.0)}, "status": "limited", "limit": "max_tokens"}
    await folder.record(b, _attempt("b", number=1, **scored))
    await folder.record(c, _attempt("c", **scored))
    found = await away.batch("sums").status()
    assert (found.status, found.done, found.limits) == ("finished", 3, {"max_tokens": 2})
    assert found.scores["includes"].mean == 1 / 3


@pytest.mark.parametrize(
    ("expected", "concurrency", "chunks", "parts"),
    [(1, 1, 1, 1), (20_000, 250, 200, 1), (20_001, 10, 201, 2), (900, 1000, 9, 4), (9, 999, 1, 1)],
)
def test_a_large_batch_is_run_in_parts(
    tmp_path: Path, expected: int, concurrency: int, chunks: int, parts: int
) -> None:
    batch = spec(tmp_path, concurrency=concurrency)
    assert parts_of(Kept(spec=batch, samples="0", count=expected, chunks=chunks)) == parts


async def test_a_batch_is_run_to_its_end_and_again_where_it_failed(
    batches: Batches, house: House
) -> None:
    script = house.folder / "answers.json"
    agent = {"model": {"name": f"scripted:{script}"}, "tools": ["finish"]}
    async with house.worker():
        handle = await batches.run(spec(house.folder, agent=agent))
        found = await handle.finished()
        assert (found.status, found.failed, found.failures) == (
            "finished",
            3,
            {"configuration": 3},
        )
        script.write_text(json.dumps({"answers": [says("a and b")]}))
        assert not (await batches.again("sums")).attached
        found = await handle.finished()
        assert (found.scored, found.failed, found.attempts) == (3, 0, 6)
        assert found.scores["includes"].mean == 2 / 3
        assert await handle.status() == found
    assert (await handle.counted()).scores == found.scores


def _attempt(sample: str, **fields: Any) -> Attempt:
    number = fields.get("number", 0)
    given = {
        "conversation_id": conversation_id("local/sums", sample, 0, number),
        "status": "scored",
        "usage": Usage(prompt_tokens=10, completion_tokens=5, cost=0.25),
    }
    return Attempt.model_validate(given | fields)
