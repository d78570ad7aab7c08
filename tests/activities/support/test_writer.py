"""A step that writes its events one by one meets those of steps of which nobody has heard."""

from pathlib import Path

from temporalio.testing import ActivityEnvironment

from perdure.activities.support.inbox_events import rejection
from perdure.activities.support.writer import Writer
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent, answered_action_id
from perdure.events.tools import ActionEvent
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, action, opened_event, prompt, spec_event

NOW = "2026-01-01T00:00:00.000000"


async def test_actions_that_were_answered_on_the_way_are_not_rejected_as_well(
    tmp_path: Path,
) -> None:
    """Two local calls were answered, their workflow task was lost, and the user interrupted."""
    log = EventLog(FileStore(tmp_path), "local", new_conversation_id())
    environment = ActivityEnvironment()
    run = environment.info.workflow_run_id or ""
    calls = [action("look") for _ in range(3)]
    begun: list[AnyEvent] = [opened_event(), spec_event(SPEC), prompt(), *calls]
    await log.append(begun, base=0, origin=Origin(run=run, activity="1"))
    actions = [entry.event for entry in await log.read(3, 3)]
    for nth in (0, 2):
        answered = actions[nth]
        assert isinstance(answered, ActionEvent)
        own = Origin(run=run, activity=f"tool.call-{nth}")
        await log.append([rejection(answered, "late", NOW)], base=6, origin=own, shared=True)

    async def reject_all() -> list[int]:
        writer = Writer(log, 6)
        for nth, item in enumerate(actions):
            assert isinstance(item, ActionEvent)
            await writer.write(f"rejection {nth}", rejection(item, "stopped", NOW))
        return [summary.seq for summary in await writer.summaries()]

    assert await environment.run(reject_all) == [6, 7, 8]
    answers = [answered_action_id(entry.event) for entry in await log.read(6, 10)]
    assert sorted(filter(None, answers)) == sorted(item.id for item in actions)
