"""Workers together keep to the rate of a model, and no conversation is stuck."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import temporalio.client
from temporalio.api.enums.v1 import EventType
from temporalio.worker import Replayer

from perdure.activities.delegate import child_id
from perdure.activities.support.step_queues import StepQueues as Limits
from perdure.agent.calls.completion import Completion
from perdure.agent.spec import Agent, SummaryCondenser
from perdure.cli.doctor_checks import Checkup, check_model_rates
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import Unreachable
from perdure.models.model import OnText, Request
from perdure.models.router import ModelRouter
from perdure.settings.settings import Settings
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.temporal.converter import CONVERTER
from perdure.worker import build_worker
from perdure.workflows.conversation import Conversation as Workflow
from tests.harness import ConversationHarness, model_workers, text_answer, tool_call_answer
from tests.workflows.watching import wait_for_status, wait_until

FREQUENT = 60_000.0
"""Calls a minute that no test comes near."""

ADDING = tool_call_answer(("add", {"a": 1, "b": 2}))


class CountingModels(ModelRouter):
    """A model that knows when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.request_times: list[float] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.request_times.append(time.monotonic())
        return await super().complete(request, on_text)


def with_rate_limit(
    harness: ConversationHarness, rate: float, *specs: Agent
) -> ConversationHarness:
    """The harness, where the models of these specs may be asked so often in a minute."""
    rates = {spec.model.name: rate for spec in specs}
    lanes = Limits(harness.client.task_queue, rates)
    return replace(
        harness, resources=replace(harness.resources, model=CountingModels(), queues=lanes)
    )


def times(harness: ConversationHarness) -> list[float]:
    """Return the times at which its model was asked."""
    assert isinstance(harness.resources.model, CountingModels)
    return harness.resources.model.request_times


def with_queues(harness: ConversationHarness) -> Client:
    """A client that knows the limits."""
    client = harness.client
    names = harness.resources.queues.rates
    return Client(client.temporal, client.store, task_queue=client.task_queue, limited_models=names)


@contextlib.asynccontextmanager
async def working(harness: ConversationHarness) -> AsyncIterator[None]:
    async with harness.worker(), model_workers(harness):
        yield


async def queues(talk: Conversation, *kinds: str) -> list[str]:
    """Return the queues of the steps of these kinds in order, by their suffix."""
    history = await talk.handle.fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    return [
        item.task_queue.name.removeprefix(talk.workflow.task_queue)
        for item in scheduled
        if item.activity_type.name in kinds
    ]


async def replays(talk: Conversation) -> None:
    replayer = Replayer(workflows=[Workflow], data_converter=CONVERTER, debug_mode=True)
    await replayer.replay_workflow(await talk.handle.fetch_history())


@pytest.mark.long
async def test_all_workers_together_keep_to_the_rate(harness: ConversationHarness) -> None:
    spec = harness.spec(ADDING, ADDING, ADDING, text_answer("done"))
    here = with_rate_limit(harness, 120, spec)
    there = replace(here, resources=replace(here.resources, model=CountingModels()))
    address = harness.client.temporal.service_client.config.target_host
    other = await temporalio.client.Client.connect(address, data_converter=CONVERTER)
    there = replace(
        there, client=Client(other, harness.client.store, "local", here.client.task_queue)
    )
    async with working(here), working(there):
        began = time.monotonic()
        talks = [await with_queues(here).start("go", spec) for _ in range(3)]
        for talk in talks:
            await talk.wait_for_turn()
    mine, others = (times(item) for item in (here, there))
    assert len(mine) + len(others) == 12
    assert mine
    assert others
    # Two a second, of which some come at once; each worker for itself would take half the time.
    assert max(mine + others) - began > (12 - 4) / 2


@pytest.mark.long
async def test_a_step_on_the_common_queue_is_sent_to_the_models_own_once(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(ADDING, ADDING, text_answer("done"))
    harness = with_rate_limit(harness, FREQUENT, spec)
    lane = f"%{spec.model.name}"
    async with working(harness):
        talk = await harness.client.start("go", spec)
        assert (await talk.wait_for_turn()).status == "finished"
        assert await queues(talk, "llm.chat") == ["", lane, lane, lane]
        known = await with_queues(harness).start("go", spec)
        await known.wait_for_turn()
        assert await queues(known, "llm.chat") == [lane, lane, lane]
        assert await queues(known, "tool.call") == ["", ""]
    assert len(times(harness)) == 6
    await replays(talk)
    await replays(known)


async def test_a_delegate_knows_the_model_queues_of_its_parent(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(("delegate", {"task": "go on"})),
        text_answer("over"),
        tools=("delegate", "finish"),
    )
    harness = with_rate_limit(harness, FREQUENT, spec)
    async with working(harness):
        talk = await harness.client.start("go", spec)
        [action] = await action_seqs(talk)
        child = harness.client.conversation(child_id(talk.id, action))
        assert await queues(talk, "llm.chat") == ["", *[f"%{spec.model.name}"] * 2]
        assert set(await queues(child, "llm.chat")) == {f"%{spec.model.name}"}


async def action_seqs(talk: Conversation) -> list[int]:
    await talk.wait_for_turn()
    entries = await talk.log.read(0, await talk.log.end())
    return [entry.seq for entry in entries if entry.event.kind == "ActionEvent"]


async def test_titles_and_summaries_are_asked_for_from_the_queue_of_their_own_model(
    harness: ConversationHarness,
) -> None:
    titles, summaries = harness.spec(text_answer("unused")), harness.spec(text_answer("unused"))
    spec = harness.spec(
        *[text_answer("yes")] * 4,
        title_model=titles.model,
        condenser=SummaryCondenser(max_size=6, keep_first=1, model=summaries.model),
    )
    harness = with_rate_limit(harness, FREQUENT, titles, summaries)
    async with working(harness):
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()
        for number in range(3):
            await talk.send("go on", str(number))
            await talk.wait_for_turn(str(number))
        assert set(await queues(talk, "llm.chat")) == {""}
        assert await queues(talk, "llm.title") == ["", f"%{titles.model.name}"]
        assert (await queues(talk, "llm.condense"))[:2] == ["", f"%{summaries.model.name}"]
    assert (await talk.state()).title == "TITLE of 1 messages"


@pytest.mark.long
async def test_a_conversation_goes_on_when_its_model_queue_has_no_workers(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(ADDING, text_answer("done"), text_answer("done again"), heartbeat_timeout=1)
    knows = with_queues(with_rate_limit(harness, FREQUENT, spec))
    async with harness.worker():
        talk = await knows.start("go", spec)
        await talk.wait_for_turn()
        await talk.send("again", "again")
        assert (await talk.wait_for_turn("again")).status == "finished"
        assert await queues(talk, "llm.chat") == [f"%{spec.model.name}", "", "", ""]
    await replays(talk)


async def test_the_doctor_checks_that_workers_know_the_limits(
    harness: ConversationHarness,
) -> None:
    connection: asyncio.Future[temporalio.client.Client] = asyncio.Future()
    connection.set_result(harness.client.temporal)
    spec = harness.spec(text_answer("done"))
    name, queue = spec.model.name, harness.client.task_queue
    checkup = Checkup(
        Settings(task_queue=queue, model_rates={name: FREQUENT}), connection=connection
    )
    with pytest.raises(Unreachable, match="knows the limit of scripted"):
        await check_model_rates(checkup)
    async with working(with_rate_limit(harness, FREQUENT, spec)):
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()
        assert f"{name} 60000 calls a minute" in await check_model_rates(checkup)


class Forgetful(FileStore):
    """Stores an answer of the model, and then knows nothing of it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refused = 0
        self.answers: set[str] = set()

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        if b"llm_response_id" in body:
            self.answers.add(key)
            self._refuse()
        return created

    async def read(self, key: str) -> bytes | None:
        if key in self.answers:
            self._refuse()
        return await super().read(key)

    def _refuse(self) -> None:
        self.refused += 1
        raise StoreUnavailable("It is away.")


@pytest.mark.long
async def test_an_answer_is_requested_once_though_its_step_ran_on_two_queues(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(text_answer("done"), heartbeat_timeout=1)
    harness = with_rate_limit(harness, FREQUENT, spec)
    store = Forgetful(harness.folder / "store")
    there = replace(harness, resources=replace(harness.resources, store=store))
    without = replace(harness.resources, queues=Limits())
    worker = build_worker(harness.client.temporal, harness.client.task_queue, without)
    async with worker:
        async with model_workers(there):
            talk = await with_queues(harness).start("go", spec)
            await wait_until(lambda: store.refused > 1)
        await talk.wait_for_turn()
        async with asyncio.timeout(30):  # the answer is in the log before its step has ended
            while len(steps := await queues(talk, "llm.chat")) < 2:
                await asyncio.sleep(0.1)
        assert steps == [f"%{spec.model.name}", ""]
    assert len(times(harness)) == 1
    await replays(talk)


async def test_a_person_can_stop_a_call_that_waits_for_its_turn(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(text_answer("one"), text_answer("two"))
    harness = with_rate_limit(harness, 0.01, spec)
    knows = with_queues(harness)
    async with working(harness):
        first = await knows.start("go", spec)
        second = await knows.start("go", spec)
        third = await knows.start("go", spec)
        await wait_until(lambda: bool(times(harness)))
        for talk in (first, second, third):
            await talk.interrupt()
            await wait_for_status(talk, "idle", "finished")
    assert len(times(harness)) < 3
