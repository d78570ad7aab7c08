"""The activity that runs a tool reports calls that cannot be made."""

from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from perdure.activities.support.resources import Resources
from perdure.activities.tool import ToolActivities
from perdure.agent.loop.steps import Act, Task
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.tools import AgentErrorEvent
from perdure.models.router import ModelRouter
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
