"""A model is asked only as often as it may be, by all workers together, and nobody is stuck."""

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import temporalio.client
from temporalio.api.enums.v1 import EventType
from temporalio.worker import Replayer

from activities.delegate import child_id
from activities.lanes import Lanes as Limits
from agent.completion import Completion
from agent.spec import Spec, SummaryCondenser
from cli.checks import limits
from client.client import Client
from client.conversation import Conversation
from client.converter import CONVERTER
from client.errors import Unreachable
from models.model import OnText, Request
from models.models import Models
from settings.settings import Settings
from storage.errors import StoreUnavailable
from storage.files import FileStore
from tests.house import House, calls, says
from tests.workflows.watching import seen, until
from worker import asking_limited_models, build_worker
from workflows.conversation import Conversation as Workflow

FREQUENT = 60_000.0
"""Calls a minute that no test comes near."""

ADDING = calls(("add", {"a": 1, "b": 2}))


class Counting(Models):
    """A model that knows when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        self.asked.append(time.monotonic())
        return await super().complete(request, on_text)


def limited(house: House, rate: float, *specs: Spec) -> House:
    """The house, where the models of these specs may be asked so often in a minute."""
    rates = {spec.model.name: rate for spec in specs}
    lanes = Limits(house.client.task_queue, rates)
    return replace(house, world=replace(house.world, model=Counting(), lanes=lanes))


def times(house: House) -> list[float]:
    """When its model was asked."""
    assert isinstance(house.world.model, Counting)
    return house.world.model.asked


def knowing(house: House) -> Client:
    """A client that knows the limits."""
    client = house.client
    names = house.world.lanes.rates
    return Client(client.temporal, client.store, task_queue=client.task_queue, limited=names)


@contextlib.asynccontextmanager
async def working(house: House) -> AsyncIterator[None]:
    async with house.worker(), asking_limited_models(house.client.temporal, house.world):
        yield


async def queues(talk: Conversation, *kinds: str) -> list[str]:
    """Where the steps of these kinds were queued, in order, by what is behind the common queue."""
    history = await talk.handle.fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    return [
        one.task_queue.name.removeprefix(talk.remote.task_queue)
        for one in scheduled
        if one.activity_type.name in kinds
    ]


async def replays(talk: Conversation) -> None:
    replayer = Replayer(workflows=[Workflow], data_converter=CONVERTER, debug_mode=True)
    await replayer.replay_workflow(await talk.handle.fetch_history())


@pytest.mark.long
async def test_all_workers_together_keep_to_the_rate(house: House) -> None:
    spec = house.spec(ADDING, ADDING, ADDING, says("done"))
    here = limited(house, 120, spec)
    there = replace(here, world=replace(here.world, model=Counting()))
    address = house.client.temporal.service_client.config.target_host
    other = await temporalio.client.Client.connect(address, data_converter=CONVERTER)
    there = replace(
        there, client=Client(other, house.client.store, "local", here.client.task_queue)
    )
    async with working(here), working(there):
        began = time.monotonic()
        talks = [await knowing(here).start("go", spec) for _ in range(3)]
        for talk in talks:
            await talk.finished()
    mine, others = (times(one) for one in (here, there))
    assert len(mine) + len(others) == 12
    assert mine
    assert others
    # Two a second, of which some come at once; each worker for itself would take half the time.
    assert max(mine + others) - began > (12 - 4) / 2


@pytest.mark.long
async def test_a_step_on_the_common_queue_is_sent_to_the_models_own_once(house: House) -> None:
    spec = house.spec(ADDING, ADDING, says("done"))
    house = limited(house, FREQUENT, spec)
    lane = f"%{spec.model.name}"
    async with working(house):
        talk = await house.client.start("go", spec)
        assert (await talk.finished()).status == "finished"
        assert await queues(talk, "llm.chat") == ["", lane, lane, lane]
        known = await knowing(house).start("go", spec)
        await known.finished()
        assert await queues(known, "llm.chat") == [lane, lane, lane]
        assert await queues(known, "tool.call") == ["", ""]
    assert len(times(house)) == 6
    await replays(talk)
    await replays(known)


async def test_who_is_delegated_to_knows_the_queues_of_its_parent(house: House) -> None:
    spec = house.spec(
        calls(("delegate", {"task": "go on"})), says("over"), tools=("delegate", "finish")
    )
    house = limited(house, FREQUENT, spec)
    async with working(house):
        talk = await house.client.start("go", spec)
        [action] = await action_seqs(talk)
        child = house.client.conversation(child_id(talk.id, action))
        assert await queues(talk, "llm.chat") == ["", *[f"%{spec.model.name}"] * 2]
        assert set(await queues(child, "llm.chat")) == {f"%{spec.model.name}"}


async def action_seqs(talk: Conversation) -> list[int]:
    await talk.finished()
    entries = await talk.log.read(0, await talk.log.end())
    return [one.seq for one in entries if one.event.kind == "ActionEvent"]


async def test_titles_and_summaries_are_asked_for_from_the_queue_of_their_own_model(
    house: House,
) -> None:
    titles, summaries = house.spec(says("unused")), house.spec(says("unused"))
    spec = house.spec(
        *[says("yes")] * 4,
        title_model=titles.model,
        condenser=SummaryCondenser(max_size=6, keep_first=1, model=summaries.model),
    )
    house = limited(house, FREQUENT, titles, summaries)
    async with working(house):
        talk = await house.client.start("go", spec)
        await talk.finished()
        for number in range(3):
            await talk.send("go on", str(number))
            await talk.finished(str(number))
        assert set(await queues(talk, "llm.chat")) == {""}
        assert await queues(talk, "llm.title") == ["", f"%{titles.model.name}"]
        assert (await queues(talk, "llm.condense"))[:2] == ["", f"%{summaries.model.name}"]
    assert (await talk.state()).title == "TITLE of 1 messages"


@pytest.mark.long
async def test_a_conversation_goes_on_where_nobody_takes_steps_for_its_model_any_more(
    house: House,
) -> None:
    spec = house.spec(ADDING, says("done"), says("done again"), heartbeat_timeout=1)
    knows = knowing(limited(house, FREQUENT, spec))
    async with house.worker():
        talk = await knows.start("go", spec)
        await talk.finished()
        await talk.send("again", "again")
        assert (await talk.finished("again")).status == "finished"
        assert await queues(talk, "llm.chat") == [f"%{spec.model.name}", "", "", ""]
    await replays(talk)


async def test_the_doctor_tells_whether_workers_know_the_limits(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connected() -> temporalio.client.Client:
        return house.client.temporal

    monkeypatch.setattr("cli.checks.connect", connected)
    spec = house.spec(says("done"))
    name, queue = spec.model.name, house.client.task_queue
    settings = Settings(task_queue=queue, model_rates={name: FREQUENT})
    with pytest.raises(Unreachable, match="knows the limit of scripted"):
        await limits(settings)
    async with working(limited(house, FREQUENT, spec)):
        talk = await house.client.start("go", spec)
        await talk.finished()
        assert f"{name} 60000 calls a minute" in await limits(settings)


class Forgetful(FileStore):
    """Takes no event any more once an answer of the model is on record, for a while."""

    refused = 0
    refuses = True

    async def create(self, key: str, body: bytes) -> bool:
        if self.refuses and self.refused and "/events/" in key:
            self.refused += 1
            raise StoreUnavailable("It is away.")
        if "/responses/" in key:
            self.refused = 1
        return await super().create(key, body)


@pytest.mark.long
async def test_an_answer_is_paid_for_once_though_it_is_asked_for_on_two_queues(
    house: House,
) -> None:
    spec = house.spec(says("done"), heartbeat_timeout=1)
    house = limited(house, FREQUENT, spec)
    store = Forgetful(house.folder / "store")
    there = replace(house, world=replace(house.world, store=store))
    without = replace(house.world, lanes=Limits())
    worker = build_worker(house.client.temporal, house.client.task_queue, without)
    async with worker:
        async with asking_limited_models(house.client.temporal, there.world):
            talk = await knowing(house).start("go", spec)
            await seen(lambda: store.refused > 1)
        await talk.finished()
        assert await queues(talk, "llm.chat") == [f"%{spec.model.name}", ""]
    assert len(times(house)) == 1
    await replays(talk)


async def test_a_person_can_stop_a_call_that_waits_for_its_turn(house: House) -> None:
    spec = house.spec(says("one"), says("two"))
    house = limited(house, 0.01, spec)
    knows = knowing(house)
    async with working(house):
        first = await knows.start("go", spec)
        second = await knows.start("go", spec)
        third = await knows.start("go", spec)
        await seen(lambda: bool(times(house)))
        for talk in (first, second, third):
            await talk.interrupt()
            await until(talk, "idle", "finished")
    assert len(times(house)) < 3
