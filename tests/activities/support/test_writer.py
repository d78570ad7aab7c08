"""A step that writes its events one by one meets those of steps of which nobody has heard."""

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.support.inbox_events import rejection
from perdure.activities.support.writer import Writer
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent, answered_action_id
from perdure.events.messages import RecallEvent
from perdure.events.tools import ActionEvent
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, action, opened_event, prompt, spec_event, user
from tests.logs import recall_event

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


@pytest.mark.parametrize(("is_late", "ending"), [(False, "RecallEvent"), (True, "ActionEvent")])
async def test_an_attempt_that_is_late_recalls_nothing_behind_the_steps_that_followed(
    tmp_path: Path, is_late: bool, ending: str
) -> None:
    """The attempt of which the workflow knows recalled nothing; this one finds more by now."""
    log = EventLog(FileStore(tmp_path), "local", new_conversation_id())
    environment = ActivityEnvironment()
    run = environment.info.workflow_run_id or ""
    begun: list[AnyEvent] = [opened_event(), spec_event(SPEC), action("look")]
    await log.append(begun, base=0, origin=Origin(run=run, activity="1"))
    called = (await log.get(2)).event
    assert isinstance(called, ActionEvent)

    async def record_message(recalled: RecallEvent | None) -> int:
        writer = Writer(log, 3)
        await writer.write("message", user("Hi."))
        if recalled is not None:
            await writer.write("recall", recalled, optional=True)
        return len(await writer.summaries())

    assert await environment.run(record_message, None) == 1
    beside = Origin(run=run, activity="tool.call")
    answer = rejection(called, "no", NOW)
    await log.append([answer], base=3, origin=beside, shared=True)
    if is_late:
        thought = Origin(run=run, activity="llm.chat")
        await log.append([action("look")], base=5, origin=thought)
    await environment.run(record_message, recall_event())
    assert (await log.get(await log.end() - 1)).event.kind == ending
    assert await log.end() == 6
