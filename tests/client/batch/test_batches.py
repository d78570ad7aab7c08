"""The handle of a batch before, during and after its run, and without Temporal."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.service import RPCError

import perdure.client.batch.handle as handle_module
from perdure.client.batch.batches import Batches, count_shards
from perdure.client.batch.handle import BatchHandle
from perdure.client.batch.progress import count_progress
from perdure.errors import Conflict, Invalid, NotFound, TimedOut
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.result import AttemptFailure, AttemptResult
from perdure.evaluation.sample import conversation_id
from perdure.evaluation.score import Score
from perdure.evaluation.spec import BatchSpec, parse_batch
from perdure.events.usage import Usage
from perdure.storage.batches import BatchRecord
from tests.harness import ConversationHarness, text_answer

Rows = list[dict[str, Any]]

ROWS: Rows = [{"id": text, "input": f"What is {text}?", "target": text} for text in ("a", "b", "c")]


@pytest.fixture(autouse=True)
def _short_result_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for a result: most of these tests run no worker."""
    monkeypatch.setattr(handle_module, "RESULT_TIMEOUT", handle_module.RESULT_TIMEOUT / 20)


@pytest.fixture
def batches(harness: ConversationHarness) -> Batches:
    return Batches.from_client(harness.client)


@pytest_asyncio.fixture(autouse=True)
async def _terminate_batch(batches: Batches) -> AsyncIterator[None]:
    """Terminate the batch of a test, so that the next one can start its own."""
    yield
    with contextlib.suppress(RPCError):
        await terminate(batches.batch("sums"))


@pytest_asyncio.fixture
async def terminated_batch(batches: Batches, harness: ConversationHarness) -> BatchHandle:
    """A batch that was started and whose workflow was terminated."""
    handle = await batches.run(spec(harness.folder))
    await terminate(handle)
    return handle


def spec(folder: Path, rows: Rows = ROWS, **changes: Any) -> BatchSpec:
    path = folder / f"{uuid4()}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    defaults = {
        "name": "sums",
        "dataset": str(path),
        "agent": {"model": {"name": "scripted:none.json"}, "tools": ["finish"]},
        "scorers": ["includes"],
    }
    return parse_batch({**defaults, **changes})


async def terminate(handle: BatchHandle) -> None:
    await handle.handle.terminate()


async def test_a_batch_is_in_the_store_before_it_is_started(
    batches: Batches, harness: ConversationHarness
) -> None:
    batch = spec(harness.folder, epochs=2, batch_limits={"tokens": 900})
    handle = await batches.run(batch, options={"file": "sums.toml"})
    record = await handle.load_record()
    assert (record.spec, record.count, record.chunks, record.expected_attempts) == (batch, 3, 1, 6)
    assert record.options == {"file": "sums.toml", "mode": "missing"}
    assert [row.id for row in await handle.folder.read_chunk(record.samples, 0)] == ["a", "b", "c"]
    assert await handle.is_running()
    assert not handle.attached
    status = await handle.status()
    assert (status.status, status.expected, status.missing, status.tokens) == ("running", 6, 6, 900)
    assert "No worker" in (status.reason or "")
    with pytest.raises(TimedOut, match="No worker took the change"):
        await handle.update_limits(LimitsUpdate(concurrency=3), max_wait=0.1)


async def test_an_unchanged_running_batch_is_attached_to(
    batches: Batches, harness: ConversationHarness
) -> None:
    handle = await batches.run(spec(harness.folder))
    before = await handle.load_record()
    assert (await batches.run(spec(harness.folder))).attached
    for changed, message in (
        (spec(harness.folder, concurrency=3), "another concurrency"),
        (spec(harness.folder, scorers=["exact"], epochs=2), "another epochs, scorers"),
        (spec(harness.folder, ROWS[:2]), "another dataset"),
        (spec(harness.folder, [*ROWS, {"input": "More?"}]), "another dataset"),
    ):
        with pytest.raises(Conflict, match=message) as refused:
            await batches.run(changed)
        assert "perdure batch retune sums" in refused.value.hint
    with pytest.raises(Conflict, match="scoring again is not what it does"):
        await batches.rerun("sums", "rescore")
    assert await handle.load_record() == before, "what runs is not changed behind its back"


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        (ROWS, {"agent": {"model": "scripted:none.json", "tools": ["think"]}}, "another tools"),
        (ROWS, {"agent": {"model": "openai/other", "tools": ["finish"]}}, "another model"),
        ([{**ROWS[0], "input": "Else?"}], {}, "'a' is not what it was .* asks for something else"),
        ([{**ROWS[0], "files": {"x": "y"}}], {}, "'a' is not what it was .* has other files"),
        ([{**ROWS[0], "target": "z"}], {}, "'a' is not what it was .* its target"),
    ],
)
async def test_changes_that_contradict_an_earlier_run_are_refused(
    batches: Batches,
    harness: ConversationHarness,
    terminated_batch: BatchHandle,
    rows: Rows,
    changes: Any,
    message: str,
) -> None:
    before = await terminated_batch.load_record()
    with pytest.raises(Conflict, match=message):
        await batches.run(spec(harness.folder, rows, **changes))
    assert (await terminated_batch.load_record(), await terminated_batch.is_running()) == (
        before,
        False,
    )


@pytest.mark.usefixtures("terminated_batch")
async def test_more_samples_and_other_limits_are_accepted(
    batches: Batches, harness: ConversationHarness
) -> None:
    more = [{"input": "And more?"}, ROWS[2]]
    agent = {"model": {"name": "scripted:none.json", "api_base": "http://127.0.0.1:9"}}
    limits = {"limits": {"max_iterations": 3}, "tools": ["finish"]}
    batch = spec(harness.folder, more, concurrency=2, epochs=3, agent={**agent, **limits})
    handle = await batches.run(batch)
    assert (await handle.load_record()).expected_attempts == 6
    await terminate(handle)
    with pytest.raises(Conflict, match="'a' is not what it was"):
        await batches.run(spec(harness.folder, [{**ROWS[0], "input": "Else?"}]))


@pytest.mark.usefixtures("terminated_batch")
async def test_targets_may_change_when_samples_are_rescored(
    batches: Batches, harness: ConversationHarness
) -> None:
    mended = [{**ROWS[0], "target": "z"}]
    with pytest.raises(Conflict) as refused:
        await batches.run(spec(harness.folder, mended))
    assert "perdure batch rescore sums FILE" in refused.value.hint
    await terminate(await batches.run(spec(harness.folder, mended), "rescore"))
    await terminate(await batches.run(spec(harness.folder, mended)))
    other = [{**mended[0], "input": "Else?"}]
    with pytest.raises(Conflict, match="asks for something else"):
        await batches.run(spec(harness.folder, other), "rescore")


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
    [
        ([*ROWS, {"id": "d"}], {}, r"\.jsonl:4: there is no column 'input'"),
        ([*ROWS, ROWS[0]], {}, r"\.jsonl:4: the id 'a' is that of line 1 too"),
        ([], {}, "has no samples"),
        (ROWS, {"ids": ["d"]}, "has no sample 'd'"),
        (ROWS, {"scorers": ["includes", "no_such_module:judge"]}, "scorers.1: .* cannot be"),
    ],
)
async def test_an_invalid_batch_is_refused_before_it_is_started(
    batches: Batches, harness: ConversationHarness, rows: Rows, changes: Any, message: str
) -> None:
    with pytest.raises(Invalid, match=message):
        await batches.run(spec(harness.folder, rows, **changes))
    assert await batches.list_names() == []


async def test_an_unknown_batch_is_refused_with_the_existing_names(
    batches: Batches, terminated_batch: BatchHandle
) -> None:
    with pytest.raises(NotFound, match="There is no batch 'other'") as unknown:
        await batches.get("other")
    assert unknown.value.hint == "There are sums."
    with pytest.raises(Conflict, match="is not running"):
        await terminated_batch.pause()
    with pytest.raises(NotFound):
        await batches.batch("other").resume()
    with pytest.raises(Invalid, match="is not the name of a batch"):
        batches.batch("../sums")


async def test_progress_is_counted_in_the_store_without_a_workflow(
    harness: ConversationHarness, terminated_batch: BatchHandle
) -> None:
    folder, record = terminated_batch.folder, await terminated_batch.load_record()
    a, b, c = await folder.read_chunk(record.samples, 0)
    failure = AttemptFailure(kind="infrastructure", code="timeout", detail="It took too long.")
    await folder.record_attempt(a, _build_attempt("a", scores={"includes": Score(value=1.0)}))
    await folder.record_attempt(b, _build_attempt("b", status="failed", failure=failure))
    await folder.record_attempt(c.model_copy(update={"id": "left"}), _build_attempt("left"))
    status = await terminated_batch.wait_until_finished()
    assert (status.status, status.scored, status.failed, status.missing) == ("stopped", 1, 1, 1)
    assert status.reason == "its workflow was terminated in Temporal"
    assert (status.attempts, status.spent.cost) == (2, 0.5), (
        "what is no sample any more is not here"
    )
    assert status.newest_failure == "timeout: It took too long."
    away = Batches(harness.client.store)
    assert await away.batch("sums").count_progress() == await count_progress(folder, record)
    assert "Temporal does not answer" in ((await away.batch("sums").status()).reason or "")
    scored = {"scores": {"includes": Score(value=0.0)}, "status": "limited", "limit": "max_tokens"}
    await folder.record_attempt(b, _build_attempt("b", number=1, **scored))
    await folder.record_attempt(c, _build_attempt("c", **scored))
    status = await away.batch("sums").status()
    assert (status.status, status.done, status.limits) == ("finished", 3, {"max_tokens": 2})
    assert status.scores["includes"].mean == 1 / 3


@pytest.mark.parametrize(
    ("expected", "concurrency", "chunks", "parts"),
    [(1, 1, 1, 1), (20_000, 250, 200, 1), (20_001, 10, 201, 2), (900, 1000, 9, 4), (9, 999, 1, 1)],
)
def test_a_large_batch_is_run_in_shards(
    tmp_path: Path, expected: int, concurrency: int, chunks: int, parts: int
) -> None:
    batch = spec(tmp_path, concurrency=concurrency)
    assert (
        count_shards(BatchRecord(spec=batch, samples="0", count=expected, chunks=chunks)) == parts
    )


@pytest.mark.long
async def test_a_finished_batch_is_rerun_where_it_failed(
    batches: Batches, harness: ConversationHarness
) -> None:
    script = harness.folder / "answers.json"
    agent = {"model": {"name": f"scripted:{script}"}, "tools": ["finish"]}
    async with harness.worker():
        handle = await batches.run(spec(harness.folder, agent=agent))
        status = await handle.wait_until_finished()
        assert (status.status, status.failed, status.failures) == (
            "finished",
            3,
            {"configuration": 3},
        )
        script.write_text(json.dumps({"answers": [text_answer("a and b")]}))
        assert not (await batches.rerun("sums")).attached
        status = await handle.wait_until_finished()
        assert (status.scored, status.failed, status.attempts) == (3, 0, 6)
        assert status.scores["includes"].mean == 2 / 3
        assert await handle.status() == status
    assert (await handle.count_progress()).scores == status.scores


def _build_attempt(sample: str, **fields: Any) -> AttemptResult:
    number = fields.get("number", 0)
    defaults = {
        "conversation_id": conversation_id("local/sums", sample, 0, number),
        "status": "scored",
        "usage": Usage(prompt_tokens=10, completion_tokens=5, cost=0.25),
    }
    return AttemptResult.model_validate(defaults | fields)


async def test_a_batch_is_attached_to_from_another_folder(
    batches: Batches, harness: ConversationHarness
) -> None:
    batch = spec(harness.folder)
    await batches.run(batch)
    harness.client.code_folder = str(harness.folder)
    assert (await batches.run(batch)).attached
    record = await batches.batch("sums").load_record()
    assert record.spec.agent.code is None
