"""Workflows of versions whose ids had no user: they go on, for their own user alone."""

import asyncio

import pytest
import temporalio.client
from temporalio.client import WorkflowHistory

from perdure.client.address import WorkflowAddress
from perdure.client.batch.batches import Batches
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.description import describe_workflow
from perdure.client.diagnosis.diagnose import diagnose_workflow
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, NotFound
from perdure.operations.purge import list_purge_targets, purge
from perdure.temporal.names import conversation_workflow_id
from tests.client.strangers import WRITES, as_user, client_of, outcome_of, start_as_before
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.batches import FakeModel, make_sums, results, start_batch, with_model
from tests.workflows.batches import spec as batch_spec
from tests.workflows.test_replay import replayer


@pytest.mark.long
@pytest.mark.parametrize("searchable", [False, True])
async def test_a_conversation_of_before_is_reached_by_its_user_and_by_nobody_else(
    harness: ConversationHarness, searchable: bool
) -> None:
    annas = as_user(harness, "anna")
    searchable = searchable and await harness.client.has_search_attributes()
    answers = [text_answer(f"Answer {n}.") for n in range(9)]
    async with annas.worker():
        talk = await start_as_before(annas.client, annas.spec(*answers), searchable)
        assert (await talk.result()).text == "Answer 0."
        await talk.send("And now?")
        assert (await talk.result()).text == "Answer 1."
        assert talk.workflow_id == f"conv-{talk.id}"
        await talk.note(title="Of before")
        assert (await talk.status()).title == "Of before"
        ran = [run async for run in annas.client.temporal.list_workflows(f"WorkflowId='{talk.id}'")]
        assert ran == [], "there is no second workflow"
        end = await talk.log.end()
        for user_id in ("local", "ben"):
            stranger, unknown = client_of(harness, user_id), new_conversation_id()
            for name in WRITES.keys() - {"start"}:
                outcome = await outcome_of(WRITES[name], stranger.conversation(talk.id), talk.id)
                assert outcome == ("NotFound", "There is no conversation NAME."), name
                there = await outcome_of(WRITES[name], stranger.conversation(unknown), unknown)
                assert there == outcome
            with pytest.raises(NotFound):
                await stranger.conversation(talk.id).status()
            assert not await stranger.conversation(talk.id).exists()
            assert await diagnose_workflow(stranger.conversation(talk.id).workflow) is None
        with pytest.raises(Conflict, match="of an earlier version"):
            await harness.client.start("Hi.", harness.spec(), conversation_id=talk.id)
        assert await talk.log.end() == end


@pytest.mark.long
async def test_a_conversation_of_before_that_ended_goes_on_under_the_id_of_its_user(
    harness: ConversationHarness,
) -> None:
    annas = as_user(harness, "anna")
    async with annas.worker():
        spec = annas.spec(text_answer("Before."), text_answer("After."))
        talk = await start_as_before(annas.client, spec)
        assert (await talk.result()).text == "Before."
        assert talk.workflow_id == f"conv-{talk.id}"
        await talk.handle.terminate("as if it were lost")
        await talk.send("Go on.")
        assert (await talk.result()).text == "After."
        assert talk.workflow_id == f"conv-anna:{talk.id}"
        purged = await purge(annas.client, await list_purge_targets(annas.client, talk.id))
        assert purged.histories == 2
    for workflow_id in (f"conv-{talk.id}", f"conv-anna:{talk.id}"):
        while await describe_workflow(annas.client.temporal, workflow_id) is not None:
            await asyncio.sleep(0.05)  # Temporal deletes them soon after


@pytest.mark.long
async def test_a_conversation_of_before_names_its_delegates_and_files_as_before(
    harness: ConversationHarness,
) -> None:
    talk, child, history = await delegate(harness, is_former=True)
    assert child.startswith("conv-")
    assert ":" not in child
    assert (harness.resources.workspaces / talk.id / "file").read_text() == "kept\n"
    await replayer().replay_workflow(history)


@pytest.mark.long
async def test_a_delegate_is_a_conversation_of_its_parents_user(
    harness: ConversationHarness,
) -> None:
    talk, child, history = await delegate(harness, is_former=False)
    assert child.startswith("conv-anna:")
    folder = harness.resources.workspaces / "users" / "anna" / talk.id
    assert (folder / "file").read_text() == "kept\n"
    assert await talk.workflow.child(child).log.end() > 0
    await replayer().replay_workflow(history)


async def delegate(
    harness: ConversationHarness, is_former: bool
) -> tuple[Conversation, str, WorkflowHistory]:
    """Run a conversation of Anna's that delegates; return it, its child's id and its history."""
    annas = as_user(harness, "anna")
    tools = ("delegate", "terminal", "finish")
    spec = annas.spec(
        tool_call_answer(("terminal", {"command": "echo kept > file"})),
        tool_call_answer(("delegate", {"task": "Say hello."})),
        text_answer("Hello."),
        text_answer("It said hello."),
        tools=tools,
    )
    async with annas.worker():
        if is_former:
            talk = await start_as_before(annas.client, spec)
        else:
            talk = await annas.client.start("Go.", spec)
        await talk.result()
        history = await talk.handle.fetch_history()
    [child] = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in history.events
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    return talk, child, history


async def test_conversations_of_one_id_have_files_of_their_own(
    harness: ConversationHarness,
) -> None:
    name, folders = new_conversation_id(), harness.resources.workspaces
    async with harness.worker():
        for user_id in ("local", "anna", "ben"):
            mine = as_user(harness, user_id)
            write = tool_call_answer(("terminal", {"command": f"ls; echo {user_id} > mine"}))
            spec = mine.spec(write, text_answer("Done."), tools=("terminal",))
            talk = await mine.client.start("Go.", spec, conversation_id=name)
            await talk.result()
            entries = await talk.log.read(0, await talk.log.end())
            [seen] = [entry for entry in entries if entry.event.kind == "ObservationEvent"]
            assert "mine" not in seen.body.decode().replace("> mine", ""), "it begins empty"
    assert (folders / name / "mine").read_text() == "local\n"
    assert (folders / "users" / "anna" / name / "mine").read_text() == "anna\n"
    assert (folders / "users" / "ben" / name / "mine").read_text() == "ben\n"


@pytest.mark.long
async def test_a_batch_of_before_finishes_for_its_user(harness: ConversationHarness) -> None:
    model = FakeModel(lambda question: str(int(question.partition(" ")[0]) + 1))
    model.gate.clear()
    annas = as_user(with_model(harness, model), "anna")
    batch = batch_spec()
    async with annas.worker():
        await start_batch(annas, batch, make_sums(4), workflow_id=f"batch-{batch.name}")
        mine = Batches.from_client(annas.client).batch(batch.name)
        while not (progress := await mine.query_progress()) or progress.running < 4:
            await asyncio.sleep(0.02)
        assert mine.workflow_id == f"batch-{batch.name}"
        await mine.pause()
        await mine.resume()
        children = (await mine.describe() or pytest.fail("it runs")).pending_children
        assert {child.workflow_id for child in children} == {
            f"conv-{child.workflow_id[-36:]}" for child in children
        }
        sample = annas.client.conversation(children[0].workflow_id[-36:])
        assert await sample.exists()
        await check_strangers(harness, batch.name, sample.id)
        model.gate.set()
        assert (await mine.wait_until_finished()).scored == 4
    assert len(await results(annas, batch)) == 4


async def check_strangers(harness: ConversationHarness, name: str, sample: str) -> None:
    """Check that neither the default user nor another one reaches the batch or its samples."""
    for user_id in ("local", "ben"):
        batches = Batches.from_client(client_of(harness, user_id))
        with pytest.raises(NotFound, match="There is no batch"):
            await batches.batch(name).pause()
        assert await batches.batch(name).describe() is None
        assert not await client_of(harness, user_id).conversation(sample).exists()
    path = harness.folder / "rows.jsonl"
    path.write_text('{"id": "a", "input": "1 + 1", "target": "2"}\n')
    table = {
        "name": name,
        "dataset": str(path),
        "agent": {"model": {"name": "oracle"}, "tools": ["finish"]},
        "scorers": ["exact"],
    }
    with pytest.raises(Conflict, match="of an earlier version"):
        await Batches.from_client(harness.client).run(table)


async def test_a_new_conversation_needs_no_look_at_ids_of_before(
    harness: ConversationHarness, temporal: temporalio.client.Client
) -> None:
    client = Client(temporal, harness.client.store, "anna", harness.client.task_queue)
    talk = await client.start("Hello?", harness.spec())
    assert talk.workflow.address.former_id is None
    assert talk.workflow_id == conversation_workflow_id("anna", talk.id)


async def test_an_address_is_found_by_several_calls_at_once(harness: ConversationHarness) -> None:
    """A status asks Temporal twice at a time: the call that ends first settles the id."""
    annas = as_user(harness, "anna").client
    for _ in range(5):
        address = annas.conversation(new_conversation_id()).workflow.address

        async def find(delay: float, address: WorkflowAddress = address) -> str | None:
            await asyncio.sleep(delay)
            return await address.find(annas.temporal)

        finds = (find(number / 1000) for number in range(20))
        assert set(await asyncio.gather(*finds)) == {address.own_id}
