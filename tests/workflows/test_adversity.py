"""Whatever is sent, and whenever, a conversation goes on; and what is stopped stays stopped."""

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

from activities.delegate import child_id
from client.conversation import Conversation
from client.ids import new_conversation_id
from embedded.temporal import TemporalServer
from events.control import ConversationStateUpdateEvent
from events.entry import Origin
from events.tools import UserRejectObservation
from storage.files import FileStore
from tests.house import House, calls, kinds, says
from tests.logs import recall
from tests.workflows.watching import entries, events, notes, until

JUNK = {f"key {nth}": nth for nth in range(20_000)}


class Hesitant(FileStore):
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
def hesitant(house: House) -> Hesitant:
    """What the worker of the house writes to."""
    store = Hesitant(house.folder / "store")
    house.world = dataclasses.replace(house.world, store=store)
    return store


@pytest_asyncio.fixture
async def anybody(temporal_server: TemporalServer) -> temporalio.client.Client:
    """Somebody who sends what they like: their converter knows no limit."""
    return await temporalio.client.Client.connect(temporal_server.address)


async def failed_tasks(talk: Conversation) -> list[str]:
    """Why tasks of the workflow failed: it hangs as long as they do."""
    history = await talk.handle.fetch_history()
    failed = [one.workflow_task_failed_event_attributes for one in history.events]
    return [one.failure.message for one in failed if one.HasField("failure")]


@pytest.mark.long
async def test_what_makes_no_sense_stops_no_conversation(
    house: House, anybody: temporalio.client.Client
) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        handle = anybody.get_workflow_handle(talk.workflow_id)
        for sent in ([], [1, 2], [None], [b"\xff"], [JUNK]):
            await handle.signal("send_message", args=sent)
            await handle.signal("condense", args=sent)
            for update in ("submit_message", "respond", "configure", "note"):
                with pytest.raises(WorkflowUpdateFailedError) as refused:
                    await handle.execute_update(update, args=sent)
                assert 20 < len(str(refused.value.cause)) < 1000
        await talk.send("still there?", message_id="m")
        state = await talk.finished("m")

    assert state.status == "finished"
    assert await failed_tasks(talk) == []
    updates = await events(talk, ConversationStateUpdateEvent)
    refusals = [update.value for update in updates if update.key == "refused"]
    assert len(refusals) == 5
    assert max(map(len, refusals)) < 1000


@pytest.mark.parametrize("start", [17, {"conversation_id": "one", "user_id": "two"}])
async def test_a_start_that_makes_no_sense_fails_instead_of_hanging(
    house: House, start: Any
) -> None:
    async with house.worker():
        with pytest.raises(WorkflowFailureError):
            await house.client.temporal.execute_workflow(
                "Conversation",
                start,
                id=f"conv-{uuid.uuid4()}",
                task_queue=house.client.task_queue,
            )


async def test_a_step_that_finds_its_slot_taken_takes_in_what_is_there(
    house: House, hesitant: Hesitant
) -> None:
    """A call that was given up, and whose worker wakes, still writes what it had to say."""
    hesitant.hesitate(4)
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("hello")))
        await hesitant.reached.wait()
        run = (await talk.handle.describe()).run_id
        assert run is not None
        late = Origin(run=run, activity="9 recall")
        await talk.log.append([recall("Be brief.", "brevity")], base=4, origin=late)
        hesitant.may.set()
        state = await talk.finished()

    assert (state.status, state.skills) == ("finished", ("brevity",))
    assert kinds(await entries(talk))[3:] == ["MessageEvent", "RecallEvent", "MessageEvent"]


async def test_an_interrupt_while_an_answer_is_written_lets_none_of_its_actions_happen(
    house: House, hesitant: Hesitant
) -> None:
    hesitant.hesitate(5)
    pair = [("charge", {"amount": nth, "seconds": 0}) for nth in (1, 2)]
    async with house.worker():
        talk = await house.client.start("charge", house.spec(calls(*pair), says("as you wish")))
        await hesitant.reached.wait()
        await talk.interrupt()
        await asyncio.sleep(0.6)  # two heartbeats: by the first the step learns of it
        hesitant.may.set()
        await until(talk, "idle")
        await talk.send("no more of that", message_id="m")
        state = await talk.finished("m")

    assert state.status == "finished"
    assert len(await events(talk, UserRejectObservation)) == 2
    assert notes(house, talk, "charged") == []


async def test_an_interrupt_before_a_delegate_has_begun_keeps_it_from_beginning(
    house: House, hesitant: Hesitant
) -> None:
    hesitant.hesitate(5)
    asked = calls(("delegate", {"task": "charge"}))
    spec = house.spec(asked, calls(("charge", {"amount": 1, "seconds": 60})), tools=("delegate",))
    async with house.worker():
        talk = await house.client.start("go", spec)
        await hesitant.reached.wait()
        await talk.interrupt()
        hesitant.may.set()
        await until(talk, "idle")

    assert not await house.client.conversation(child_id(talk.id, 4)).exists()
    assert not (await talk.state()).pending


async def test_a_workflow_that_was_reset_stops_and_a_message_opens_the_conversation_again(
    house: House,
) -> None:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 0})), says("one"), says("two"))
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await talk.finished()
        history = await talk.handle.fetch_history()
        tasks = [
            one
            for one in history.events
            if one.HasField("workflow_task_completed_event_attributes")
        ]
        reset = await house.client.temporal.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=house.client.temporal.namespace,
                workflow_execution=WorkflowExecution(workflow_id=talk.workflow_id),
                workflow_task_finish_event_id=tasks[1].event_id,
                request_id=str(uuid.uuid4()),
            )
        )
        handle = house.client.temporal.get_workflow_handle(talk.workflow_id, run_id=reset.run_id)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert "fork the conversation instead" in str(failed.value.cause)
        await talk.send("and now?", message_id="m")
        state = await talk.finished("m")

    assert (state.status, state.answers) == ("finished", 3)
    assert notes(house, talk, "charged") == ["5"]


async def test_a_conversation_that_nobody_could_have_begun_is_told_of(house: House) -> None:
    async with house.worker():
        with pytest.raises(WorkflowFailureError) as failed:
            await house.client.temporal.execute_workflow(
                "Conversation",
                {"conversation_id": new_conversation_id(), "user_id": ".."},
                id=f"conv-{uuid.uuid4()}",
                task_queue=house.client.task_queue,
            )
    assert "'..'" in str(failed.value.cause)
