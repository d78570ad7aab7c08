"""Two users with a batch of one name: each has its own, and nobody has another's."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from perdure.client.batch.batches import Batches
from perdure.errors import Invalid
from perdure.evaluation.messages import LimitsUpdate
from perdure.storage.batches import BatchFolder
from tests.client.strangers import BATCH_CALLS, as_user, outcome_of
from tests.harness import ConversationHarness
from tests.workflows.batches import FakeModel, with_model
from tests.workflows.test_replay import replayer


def table(harness: ConversationHarness, name: str, user_id: str, count: int) -> dict[str, Any]:
    """Return a batch whose samples ask for the name of a user."""
    path = harness.folder / f"{uuid4()}.jsonl"
    rows = [{"id": f"s{n}", "input": f"{user_id} {n}", "target": user_id} for n in range(count)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    agent = {"model": {"name": "oracle"}, "tools": ["finish"]}
    scorers = ["exact"]
    return {"name": name, "dataset": str(path), "agent": agent, "scorers": scorers}


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(lambda question: question.partition(" ")[0])


@pytest_asyncio.fixture
async def worlds(
    harness: ConversationHarness, model: FakeModel
) -> AsyncIterator[dict[str, ConversationHarness]]:
    """The harnesses of two users and of the default one, whose worker is the same."""
    harness = with_model(harness, model)
    async with harness.worker():
        yield {"local": harness, **{name: as_user(harness, name) for name in ("anna", "ben")}}


@pytest.mark.long
async def test_batches_of_one_name_run_side_by_side_with_their_own_results(
    worlds: dict[str, ConversationHarness], model: FakeModel
) -> None:
    name, counts = f"twins-{uuid4().hex[:8]}", {"local": 2, "anna": 3, "ben": 4}
    model.gate.clear()
    handles = {}
    for user_id, harness in worlds.items():
        batches = Batches.from_client(harness.client)
        handles[user_id] = await batches.run(table(harness, name, user_id, counts[user_id]))
        assert not handles[user_id].attached
    assert [handle.workflow_id for handle in handles.values()] == [
        f"batch-{name}",
        f"batch-anna:{name}",
        f"batch-ben:{name}",
    ]
    assert all([await handle.is_running() for handle in handles.values()])
    await handles["anna"].update_limits(LimitsUpdate(concurrency=2))
    model.gate.set()
    for user_id, handle in handles.items():
        progress = await handle.wait_until_finished()
        await replayer().replay_workflow(await handle.handle.fetch_history())
        assert (progress.scored, progress.expected) == (counts[user_id],) * 2
        store = worlds[user_id].client.store
        results = [item async for item in BatchFolder(store, user_id, name).read_results()]
        assert len(results) == counts[user_id]
        assert all(item.attempts[0].scores["exact"].value == 1 for item in results)
        assert await Batches.from_client(worlds[user_id].client).list_names() == [name]
    assert model.question_counts == {
        f"{user_id} {n}": 1 for user_id, count in counts.items() for n in range(count)
    }


@pytest.mark.long
async def test_a_strangers_batch_is_as_if_it_did_not_exist(
    worlds: dict[str, ConversationHarness], model: FakeModel
) -> None:
    name, unknown = f"secret-{uuid4().hex[:8]}", f"other-{uuid4().hex[:8]}"
    model.gate.clear()
    mine = await Batches.from_client(worlds["anna"].client).run(
        table(worlds["anna"], name, "anna", 3)
    )
    while not (progress := await mine.query_progress()) or progress.running < 3:
        await asyncio.sleep(0.02)
    before = await all_that_is_told(worlds, mine.workflow_id)
    for user_id in ("ben", "local"):
        batches = Batches.from_client(worlds[user_id].client)
        for call in BATCH_CALLS.values():
            strangers = await outcome_of(call, batches.batch(name), name)
            assert strangers == await outcome_of(call, batches.batch(unknown), unknown)
        calls: list[Callable[[str], Awaitable[Any]]] = [batches.get, batches.rerun]
        for each in calls:
            kind, text = await outcome_of(each, name, name)
            assert (kind, text) == ("NotFound", "There is no batch 'NAME'.")
        assert await batches.list_names() == []
    assert await all_that_is_told(worlds, mine.workflow_id) == before
    model.gate.set()
    assert (await mine.wait_until_finished()).scored == 3


async def all_that_is_told(worlds: dict[str, ConversationHarness], workflow_id: str) -> Any:
    """Return what the user's store has of the batch, and its signals and updates."""
    client = worlds["anna"].client
    history = await client.temporal.get_workflow_handle(workflow_id).fetch_history()
    told = [
        event.event_id
        for event in history.events
        if event.HasField("workflow_execution_signaled_event_attributes")
        or event.HasField("workflow_execution_update_accepted_event_attributes")
        or event.HasField("workflow_execution_cancel_requested_event_attributes")
    ]
    keys = await client.store.list("users/anna/batches/")
    return told, {key: await client.store.read(key) for key in keys}


async def test_a_name_that_is_too_long_beside_its_user_is_refused(
    worlds: dict[str, ConversationHarness],
) -> None:
    harness = as_user(worlds["local"], "u" * 128)
    with pytest.raises(Invalid, match="too long"):
        await Batches.from_client(harness.client).run(table(harness, "b" * 200, "u", 1))
    assert await Batches.from_client(harness.client).list_names() == []
