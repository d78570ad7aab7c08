"""People come before batches, and batches share what people leave them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
import temporalio.client
import temporalio.worker
from temporalio import activity
from temporalio.common import Priority
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

import worker
from activities.delegate import child_id
from activities.lanes import Lanes
from agent.completion import Completion
from agent.inbox import Said
from agent.spec import Spec
from agent.start import Start
from client.client import Client
from client.conversation import Conversation
from client.converter import CONVERTER
from client.ids import new_conversation_id
from events.tools import ActionEvent
from models.model import OnText, Request
from models.models import Models
from tests.house import House, calls, says
from tests.workflows.watching import entries, seen
from worker import asking_limited_models, home_of

CROWD = 16
"""Conversations of a batch. Each waits for a step, so that a round has as many steps."""


class Done(NamedTuple):
    """A step that a worker took."""

    workflow: str
    queue: str
    priority: tuple[int | None, str | None]


class Watching(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Notes the steps that workers take."""

    def __init__(self) -> None:
        self.steps: list[Done] = []

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Noting(next, self.steps)


class _Noting(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, steps: list[Done]) -> None:
        super().__init__(following)
        self._steps = steps

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        priority = (info.priority.priority_key, info.priority.fairness_key)
        self._steps.append(Done(info.workflow_id or "", info.task_queue, priority))
        return await super().execute_activity(input)


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest_asyncio.fixture
async def watched(house: House, watching: Watching) -> House:
    """A house, of whose workers every step is noted."""
    address = house.client.temporal.service_client.config.target_host
    temporal = await temporalio.client.Client.connect(
        address, data_converter=CONVERTER, interceptors=[watching]
    )
    queue = house.client.task_queue
    return replace(house, client=Client(temporal, house.client.store, task_queue=queue))


def of_batch(name: str) -> Priority:
    """What a batch starts its conversations with."""
    return Priority(priority_key=4, fairness_key=f"batch-{name}")


PERSON = Priority()


class Slow(Models):
    """A model that takes so long that the steps of a crowd wait for it."""

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        await asyncio.sleep(0.2)
        return await super().complete(request, on_text)


async def begun(house: House, spec: Spec, priority: Priority) -> Conversation:
    """A conversation with its first message."""
    talk = house.client.conversation(new_conversation_id())
    said = Said(text="go", message_id="first")
    start = Start(conversation_id=talk.id, user_id="local", spec=spec, inbox=(said,))
    await house.client.temporal.start_workflow(
        "Conversation",
        start,
        id=talk.workflow_id,
        task_queue=house.client.task_queue,
        priority=priority,
    )
    return talk


async def ended(talks: Sequence[Conversation]) -> None:
    for talk in talks:
        await talk.handle.terminate()


@pytest.mark.parametrize("urgency", [PERSON, of_batch("b")], ids=["a person", "another batch"])
@pytest.mark.long
async def test_who_comes_later_does_not_wait_for_the_backlog_of_a_batch(
    watched: House, watching: Watching, monkeypatch: pytest.MonkeyPatch, urgency: Priority
) -> None:
    one_at_a_time = partial(temporalio.worker.Worker, max_concurrent_activities=1)
    monkeypatch.setattr(worker, "Worker", one_at_a_time)
    watched = replace(watched, world=replace(watched.world, model=Slow()))
    long = watched.spec(*[calls(("add", {"a": 1, "b": 2}))] * 3, says("done"))
    crowd = [await begun(watched, long, of_batch("a")) for _ in range(CROWD)]
    async with watched.worker():
        await seen(lambda: len({step.workflow for step in watching.steps}) == CROWD)
        before = len(watching.steps)
        late = await begun(watched, watched.spec(says("hello")), urgency)
        await late.finished()
        taken = [step.workflow for step in watching.steps[before:]]
        await ended([*crowd, late])
    mine = [at for at, workflow in enumerate(taken) if workflow == late.workflow_id]
    assert len(mine) > 1
    # In turn with all the others, each of its steps would wait for one of each of theirs.
    others = mine[-1] + 1 - len(mine)
    assert others < (len(mine) - 1) * CROWD / 2


async def test_every_step_of_a_batch_is_as_urgent_as_the_batch(
    watched: House, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A step that a worker may begin at once was never in a queue, and it is not told how urgent.
    queued = partial(temporalio.worker.Worker, disable_eager_activity_execution=True)
    monkeypatch.setattr(worker, "Worker", queued)
    queue = watched.client.task_queue
    spec = watched.spec(
        calls(("terminal", {"command": "echo line >> a"})),
        calls(("delegate", {"task": "go on"})),
        calls(("terminal", {"command": "echo line >> a"})),
        says("over"),
        tools=("terminal", "delegate", "finish"),
    )
    home = home_of(watched.world.workspaces, queue)
    lanes = Lanes(queue, {spec.model.name: 60_000.0})
    house = replace(watched, world=replace(watched.world, home=home, lanes=lanes))
    async with house.worker(), asking_limited_models(house.client.temporal, house.world):
        talk = await begun(house, spec, of_batch("a"))
        await talk.finished()
        person = await begun(house, house.spec(says("hello")), PERSON)
        await person.finished()
    [delegating] = [
        entry.seq
        for entry in await entries(talk)
        if isinstance(entry.event, ActionEvent) and entry.event.tool_name == "delegate"
    ]
    child = f"conv-{child_id(talk.id, delegating)}"
    assert {(step.workflow, step.priority) for step in watching.steps} == {
        (talk.workflow_id, (4, "batch-a")),
        (child, (4, "batch-a")),
        (person.workflow_id, (None, None)),
    }
    assert {step.queue for step in watching.steps} == {queue, home, *lanes.queues.values()}
