"""The activity that runs a tool reports calls that cannot be made."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure.activities.support.resources import Resources
from perdure.activities.tool import ToolActivities
from perdure.agent.loop.steps import Act, Task
from perdure.client.ids import new_conversation_id
from perdure.events.actions import MCPToolAction
from perdure.events.entry import Files, Origin
from perdure.events.event import AnyEvent
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.memory.service import MemoryService
from perdure.models.router import ModelRouter
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, action, opened_event, prompt, spec_event


async def test_a_tool_that_the_worker_has_not_got_is_an_error_and_no_endless_retry(
    tmp_path: Path,
) -> None:
    """The worker's program may be older than that of the agent's start."""
    world = Resources(FileStore(tmp_path / "store"), ModelRouter(), tmp_path)
    log = EventLog(world.store, "local", new_conversation_id())
    spec = SPEC.model_copy(update={"tools": ("think",)})
    before: list[AnyEvent] = [opened_event(), spec_event(spec), prompt(), action("look")]
    await log.append(before, base=0, origin=Origin(run="before", activity="1"))
    task: Task[Any] = Task(
        conversation_id=log.conversation_id,
        user_id="local",
        base=4,
        step=Act(action_seq=3, spec_seq=1, prompt_seq=2, repeatable=True),
    )
    await ActivityEnvironment().run(ToolActivities(world).call, task)
    answer = (await log.get(4)).event
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "unknown_tool"
    assert "look was not called" in answer.error


async def test_a_local_call_leaves_files_of_another_machine_to_the_worker_that_has_them(
    tmp_path: Path,
) -> None:
    world = Resources(FileStore(tmp_path / "store"), ModelRouter(), tmp_path, home="here")
    log = EventLog(world.store, "local", new_conversation_id())
    spec = SPEC.model_copy(update={"tools": ("tests.example_tools:BRIEF_TOOLS",)})
    calling = action("add").model_copy(update={"action": MCPToolAction(data={"a": 1, "b": 2})})
    await log.append(
        [opened_event(), spec_event(spec), prompt(), calling],
        base=0,
        origin=Origin(run="before", activity="1"),
        files=Files(home="elsewhere"),
    )
    step = Act(action_seq=3, spec_seq=1, prompt_seq=2, repeatable=True, files_seq=0)
    task: Task[Any] = Task(conversation_id=log.conversation_id, user_id="local", base=4, step=step)
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(ActivityEnvironment.default_info(), is_local=True)
    with pytest.raises(ApplicationError, match="worker that has the files"):
        await environment.run(ToolActivities(world).call, task)
    assert await log.end() == 4
    at_home = Resources(world.store, world.model, tmp_path, home="elsewhere")
    await environment.run(ToolActivities(at_home).call, task)
    assert isinstance((await log.get(4)).event, ObservationEvent)


class ForgetfulStore(FileStore):
    """A store whose first answer about a memory is lost once it is written."""

    lost = 0

    async def create(self, key: str, body: bytes) -> bool:
        created = await super().create(key, body)
        if "/memory/" in key and not self.lost:
            self.lost += 1
            raise StoreUnavailable("The store does not answer.")
        return created


@pytest.mark.parametrize("is_local", [False, True])
async def test_a_call_that_may_be_made_again_waits_for_the_store_and_remembers_once(
    tmp_path: Path, is_local: bool
) -> None:
    store = ForgetfulStore(tmp_path / "store")
    world = Resources(store, ModelRouter(), tmp_path)
    log = EventLog(world.store, "local", new_conversation_id())
    spec = SPEC.model_copy(update={"tools": ("remember",)})
    calling = action("remember").model_copy(
        update={"action": MCPToolAction(data={"text": "It rains.", "key": "weather"})}
    )
    await log.append(
        [opened_event(), spec_event(spec), prompt(), calling],
        base=0,
        origin=Origin(run="before", activity="1"),
    )
    step = Act(action_seq=3, spec_seq=1, prompt_seq=2, repeatable=True)
    task: Task[Any] = Task(conversation_id=log.conversation_id, user_id="local", base=4, step=step)
    environment = ActivityEnvironment()
    if is_local:  # the ordinary activity that follows waits
        environment.info = dataclasses.replace(ActivityEnvironment.default_info(), is_local=True)
        with pytest.raises(StoreUnavailable):
            await environment.run(ToolActivities(world).call, task)
        assert await log.end() == 4
        environment = ActivityEnvironment()
    await environment.run(ToolActivities(world).call, task)
    assert isinstance((await log.get(4)).event, ObservationEvent)
    assert store.lost == 1
    [memory] = await MemoryService(store).of_user("local").list_memories(10)
    assert (memory.text, memory.version) == ("It rains.", 1)
