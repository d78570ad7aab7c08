"""The step that runs a tool: what it says of a call that cannot be made here."""

from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.tool import ToolActivities
from activities.world import World
from agent.steps import Act, Task
from client.ids import new_conversation_id
from events.entry import Origin
from events.event import AnyEvent
from events.tools import AgentErrorEvent
from models.models import Models
from storage.files import FileStore
from storage.log import EventLog
from tests.builders import SPEC, action, configured, opened, prompt


async def test_a_tool_that_the_worker_has_not_got_is_an_error_and_no_endless_retry(
    tmp_path: Path,
) -> None:
    """Its program may be older than the one that the agent was begun with."""
    world = World(FileStore(tmp_path / "store"), Models(), tmp_path)
    log = EventLog(world.store, "local", new_conversation_id())
    spec = SPEC.model_copy(update={"tools": ("think",)})
    before: list[AnyEvent] = [opened(), configured(spec), prompt(), action("look")]
    await log.append(before, base=0, origin=Origin(run="before", activity="1"))
    task: Task[Any] = Task(
        conversation_id=log.conversation_id,
        user_id="local",
        base=4,
        step=Act(action=3, spec=1, prompt=2, repeatable=True),
    )
    await ActivityEnvironment().run(ToolActivities(world).call, task)
    answer = (await log.at(4)).event
    assert isinstance(answer, AgentErrorEvent)
    assert answer.classification == "unknown_tool"
    assert "look was not called" in answer.error
