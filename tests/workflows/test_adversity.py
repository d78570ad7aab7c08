"""A conversation survives invalid input at any time, and stopped steps stay stopped."""

import asyncio
import dataclasses
import uuid
from typing import Any

import pytest
import pytest_asyncio
import temporalio.client
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from perdure.activities.delegate import child_id
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.embedded.temporal import TemporalServer
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.tools import UserRejectObservation
from perdure.storage.files import FileStore
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.logs import recall_event
from tests.workflows.watching import entries, events, notes, wait_for_status

JUNK = {f"key {nth}": nth for nth in range(20_000)}


class SlowStore(FileStore):
    """Does not touch the event in slot `seq` until it may."""

    seq: int | None = None

    def hesitate(self, seq: int) -> None:
        self.seq, self.reached, self.may = seq, asyncio.Event(), asyncio.Event()

    async def create(self, key: str, body: bytes) -> bool:
        await self._wait(key)
        return await super().create(key, body)

    async def read(self, key: str) -> bytes | None:
        await self._wait(key)
        return await super().read(key)

    async def _wait(self, key: str) -> None:
        if self.seq is not None and f"events/{self.seq:06d}_" in key:
            self.reached.set()
            await self.may.wait()


@pytest.fixture
def hesitant(harness: ConversationHarness) -> SlowStore:
    """Return the store that the worker of the harness writes to."""
    store = SlowStore(harness.folder / "store")
    harness.resources = dataclasses.replace(harness.resources, store=store)
    return store


@pytest_asyncio.fixture
async def anybody(temporal_server: TemporalServer) -> temporalio.client.Client:
    """Somebody who sends what they like: their converter knows no limit."""
    return await temporalio.client.Client.connect(temporal_server.address)


async def failed_tasks(talk: Conversation) -> list[str]:
    """Return the reasons why tasks of the workflow failed: it hangs as long as they do."""
    history = await talk.handle.fetch_history()
    failed = [event.workflow_task_failed_event_attributes for event in history.events]
    return [item.failure.message for item in failed if item.HasField("failure")]


@pytest.mark.long
async def test_invalid_signals_and_updates_stop_no_conversation(
    harness: ConversationHarness, anybody: temporalio.client.Client
) -> None:
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        handle = anybody.get_workflow_handle(talk.workflow_id)
        for sent in ([], [1, 2], [None], [b"\xff"], [JUNK]):
            await handle.signal("send_message", args=sent)
            await handle.signal("condense", args=sent)
            for update in ("submit_message", "respond", "configure", "note"):
                with pytest.raises(WorkflowUpdateFailedError) as refused:
                    await handle.execute_update(update, args=sent)
                assert 20 < len(str(refused.value.cause)) < 1000
        await talk.send("still there?", message_id="m")
        state = await talk.wait_for_turn("m")

    assert state.status == "finished"
    assert await failed_tasks(talk) == []
    updates = await events(talk, ConversationStateUpdateEvent)
    refusals = [update.value for update in updates if update.key == "refused"]
    assert len(refusals) == 5
    assert max(map(len, refusals)) < 1000


@pytest.mark.parametrize("start", [17, {"conversation_id": "one", "user_id": "two"}])
async def test_an_invalid_start_fails_instead_of_hanging(
    harness: ConversationHarness, start: Any
) -> None:
    async with harness.worker():
        with pytest.raises(WorkflowFailureError):
            await harness.client.temporal.execute_workflow(
                "Conversation",
                start,
                id=f"conv-{uuid.uuid4()}",
                task_queue=harness.client.task_queue,
            )


async def test_a_step_that_finds_its_slot_taken_adopts_the_entry(
    harness: ConversationHarness, hesitant: SlowStore
) -> None:
    """A call that was given up, and whose worker wakes, still writes what it had to say."""
    hesitant.hesitate(4)
    async with harness.worker():
        talk = await harness.client.start("hi", harness.spec(text_answer("hello")))
        await hesitant.reached.wait()
        run = (await talk.handle.describe()).run_id
        assert run is not None
        late = Origin(run=run, activity="9 recall")
        await talk.log.append([recall_event("Be brief.", "brevity")], base=4, origin=late)
        hesitant.may.set()
        state = await talk.wait_for_turn()

    assert (state.status, state.shown_skills) == ("finished", ("brevity",))
    assert event_kinds(await entries(talk))[3:] == ["MessageEvent", "RecallEvent", "MessageEvent"]


async def test_an_interrupt_while_an_answer_is_written_lets_none_of_its_actions_happen(
    harness: ConversationHarness, hesitant: SlowStore
) -> None:
    hesitant.hesitate(5)
    pair = [("charge", {"amount": nth, "seconds": 0}) for nth in (1, 2)]
    async with harness.worker():
        talk = await harness.client.start(
            "charge", harness.spec(tool_call_answer(*pair), text_answer("as you wish"))
        )
        await hesitant.reached.wait()
        await talk.interrupt()
        await asyncio.sleep(0.6)  # two heartbeats: by the first the step learns of it
        hesitant.may.set()
        await wait_for_status(talk, "idle")
        await talk.send("no more of that", message_id="m")
        state = await talk.wait_for_turn("m")

    assert state.status == "finished"
    assert len(await events(talk, UserRejectObservation)) == 2
    assert notes(harness, talk, "charged") == []


async def test_an_interrupt_before_a_delegate_has_begun_keeps_it_from_beginning(
    harness: ConversationHarness, hesitant: SlowStore
) -> None:
    hesitant.hesitate(5)
    delegation = tool_call_answer(("delegate", {"task": "charge"}))
    spec = harness.spec(
        delegation, tool_call_answer(("charge", {"amount": 1, "seconds": 60})), tools=("delegate",)
    )
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await hesitant.reached.wait()
        await talk.interrupt()
        hesitant.may.set()
        await wait_for_status(talk, "idle")

    assert not await harness.client.conversation(child_id(talk.id, 4)).exists()
    assert not (await talk.state()).pending


async def test_a_workflow_that_was_reset_stops_and_a_message_opens_the_conversation_again(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("one"),
        text_answer("two"),
    )
    async with harness.worker():
        talk = await harness.client.start("charge", spec)
        await talk.wait_for_turn()
        history = await talk.handle.fetch_history()
        tasks = [
            event
            for event in history.events
            if event.HasField("workflow_task_completed_event_attributes")
        ]
        reset = await harness.client.temporal.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=harness.client.temporal.namespace,
                workflow_execution=WorkflowExecution(workflow_id=talk.workflow_id),
                workflow_task_finish_event_id=tasks[1].event_id,
                request_id=str(uuid.uuid4()),
            )
        )
        handle = harness.client.temporal.get_workflow_handle(talk.workflow_id, run_id=reset.run_id)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert "fork the conversation instead" in str(failed.value.cause)
        await talk.send("and now?", message_id="m")
        state = await talk.wait_for_turn("m")

    assert (state.status, state.response_count) == ("finished", 3)
    assert notes(harness, talk, "charged") == ["5"]


async def test_a_conversation_that_cannot_be_opened_fails_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        with pytest.raises(WorkflowFailureError) as failed:
            await harness.client.temporal.execute_workflow(
                "Conversation",
                {"conversation_id": new_conversation_id(), "user_id": ".."},
                id=f"conv-{uuid.uuid4()}",
                task_queue=harness.client.task_queue,
            )
    assert "'..'" in str(failed.value.cause)
