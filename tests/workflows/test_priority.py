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

from perdure import worker
from perdure.activities.delegate import child_id
from perdure.activities.support.step_queues import StepQueues
from perdure.agent.calls.completion import Completion
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import Start
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.events.tools import ActionEvent
from perdure.models.model import OnText, Request
from perdure.models.router import ModelRouter
from perdure.operations.worker.process import workspace_queue
from perdure.temporal.converter import CONVERTER
from perdure.temporal.fairness import make_key, user_priority
from tests.harness import ConversationHarness, model_workers, text_answer, tool_call_answer
from tests.workflows.watching import entries, wait_until

CROWD = 16
"""Conversations of a batch. Each waits for a step, so that a round has as many steps."""


class Done(NamedTuple):
    """A step that a worker took."""

    workflow: str
    queue: str
    priority: tuple[int | None, str | None]


class StepRecorder(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Notes the steps that workers take from queues."""

    def __init__(self) -> None:
        self.steps: list[Done] = []

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _RecordingInbound(next, self.steps)


class _RecordingInbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, steps: list[Done]) -> None:
        super().__init__(following)
        self._steps = steps

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        priority = (info.priority.priority_key, info.priority.fairness_key)
        if not info.is_local:  # a local step was never in a queue
            self._steps.append(Done(info.workflow_id or "", info.task_queue, priority))
        return await super().execute_activity(input)


@pytest.fixture
def watching() -> StepRecorder:
    return StepRecorder()


@pytest_asyncio.fixture
async def watched(harness: ConversationHarness, watching: StepRecorder) -> ConversationHarness:
    """A harness, of whose workers every step is noted."""
    address = harness.client.temporal.service_client.config.target_host
    temporal = await temporalio.client.Client.connect(
        address, data_converter=CONVERTER, interceptors=[watching]
    )
    queue = harness.client.task_queue
    return replace(harness, client=Client(temporal, harness.client.store, task_queue=queue))


def of_batch(name: str) -> Priority:
    """Return the priority with which a batch starts its conversations."""
    return Priority(priority_key=4, fairness_key=f"batch-{name}")


PERSON = user_priority("local")


class SlowModels(ModelRouter):
    """A model that takes so long that the steps of a crowd wait for it."""

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        await asyncio.sleep(0.2)
        return await super().complete(request, on_text)


async def start_conversation(
    harness: ConversationHarness, spec: Agent, priority: Priority
) -> Conversation:
    """A conversation with its first message."""
    talk = harness.client.conversation(new_conversation_id())
    message = UserMessage(text="go", message_id="first")
    start = Start(conversation_id=talk.id, user_id="local", spec=spec, inbox=(message,))
    await harness.client.temporal.start_workflow(
        "Conversation",
        start,
        id=talk.workflow_id,
        task_queue=harness.client.task_queue,
        priority=priority,
    )
    return talk


async def wait_for_all(talks: Sequence[Conversation]) -> None:
    for talk in talks:
        await talk.handle.terminate()


@pytest.mark.parametrize(
    ("backlog", "urgency"),
    [
        (of_batch("a"), PERSON),
        (of_batch("a"), of_batch("b")),
        (user_priority("anna"), user_priority("ben")),
    ],
    ids=["a person behind a batch", "a batch behind another", "a user behind another"],
)
@pytest.mark.long
async def test_nobody_waits_for_the_backlog_of_another(
    watched: ConversationHarness,
    watching: StepRecorder,
    monkeypatch: pytest.MonkeyPatch,
    backlog: Priority,
    urgency: Priority,
) -> None:
    monkeypatch.setattr(worker, "MAX_STEPS", 1)
    monkeypatch.setattr(worker, "MAX_COMMON_STEPS", 1)
    watched = replace(watched, resources=replace(watched.resources, model=SlowModels()))
    long = watched.spec(*[tool_call_answer(("add", {"a": 1, "b": 2}))] * 3, text_answer("done"))
    crowd = [await start_conversation(watched, long, backlog) for _ in range(CROWD)]
    async with watched.worker():
        await wait_until(lambda: len({step.workflow for step in watching.steps}) == CROWD)
        before = len(watching.steps)
        late = await start_conversation(watched, watched.spec(text_answer("hello")), urgency)
        await late.wait_for_turn()
        taken = [step.workflow for step in watching.steps[before:]]
        await wait_for_all([*crowd, late])
    mine = [at for at, workflow in enumerate(taken) if workflow == late.workflow_id]
    assert len(mine) > 1
    # In turn with all the others, each of its steps would wait for one of each of theirs.
    others = mine[-1] + 1 - len(mine)
    assert others < (len(mine) - 1) * CROWD / 2


@pytest.mark.long
async def test_every_step_of_a_batch_is_as_urgent_as_the_batch(
    watched: ConversationHarness, watching: StepRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A step that a worker may begin at once was never in a queue, and it is not told how urgent.
    queued = partial(temporalio.worker.Worker, disable_eager_activity_execution=True)
    monkeypatch.setattr(worker, "Worker", queued)
    queue = watched.client.task_queue
    spec = watched.spec(
        tool_call_answer(("terminal", {"command": "echo line >> a"})),
        tool_call_answer(("delegate", {"task": "go on"})),
        tool_call_answer(("terminal", {"command": "echo line >> a"})),
        text_answer("over"),
        tools=("terminal", "delegate", "finish"),
    )
    home = workspace_queue(watched.resources.workspaces, queue)
    lanes = StepQueues(queue, {spec.model.name: 60_000.0})
    harness = replace(watched, resources=replace(watched.resources, home=home, queues=lanes))
    async with harness.worker(), model_workers(harness):
        talk = await start_conversation(harness, spec, of_batch("a"))
        await talk.wait_for_turn()
        person = await start_conversation(harness, harness.spec(text_answer("hello")), PERSON)
        await person.wait_for_turn()
    [delegating] = [
        entry.seq
        for entry in await entries(talk)
        if isinstance(entry.event, ActionEvent) and entry.event.tool_name == "delegate"
    ]
    child = f"conv-{child_id(talk.id, delegating)}"
    assert {(step.workflow, step.priority) for step in watching.steps} == {
        (talk.workflow_id, (4, "batch-a")),
        (child, (4, "batch-a")),
        (person.workflow_id, (None, "local")),
    }
    assert {step.queue for step in watching.steps} == {queue, home, *lanes.queues.values()}


async def test_each_users_work_has_the_users_key(harness: ConversationHarness) -> None:
    long_name = "anna" * 20
    keys = set()
    for user_id in ("anna", long_name):
        client = Client(
            *(harness.client.temporal, harness.client.store),
            user_id=user_id,
            task_queue=harness.client.task_queue,
        )
        talk = await client.start("Hello?", harness.spec(text_answer("Hello.")))
        shown = await talk.handle.describe()
        keys.add(shown.raw_description.workflow_execution_info.priority.fairness_key)
        await talk.handle.terminate()
    assert keys == {"anna", make_key(long_name)}
    assert len(make_key(long_name)) == 64
