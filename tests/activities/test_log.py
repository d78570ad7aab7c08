"""Recording what waited in an inbox: the items of one step belong together."""

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from perdure.activities.log import LogActivities
from perdure.activities.support.resources import Resources
from perdure.agent.loop.inbox import PauseRequest, SpecChange, StateNote, UserMessage
from perdure.agent.loop.steps import Record, Refusal, Task
from perdure.client.ids import new_conversation_id
from perdure.events.control import ConversationStateUpdateEvent, PauseEvent
from perdure.events.entry import Origin
from perdure.events.event import AnyEvent
from perdure.events.messages import SystemPromptEvent
from perdure.events.tools import UserRejectObservation
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.storage.keys import user_state_prefix
from perdure.storage.log.event_log import EventLog
from tests.builders import SPEC, action, opened_event, prompt, spec_event, user

SHOWN = SPEC.model_copy(update={"state": "shown"})


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(FileStore(tmp_path / "store"), "local", new_conversation_id())


async def record(log: EventLog, folder: Path, step: Record, *begun: AnyEvent) -> list[AnyEvent]:
    """Record the step behind the events of a conversation; return all of its events."""
    environment = ActivityEnvironment()
    before = Origin(run=environment.info.workflow_run_id or "", activity="before")
    events = [opened_event(), spec_event(SHOWN), prompt(), *begun]
    await log.append(events, base=0, origin=before)
    work = LogActivities(Resources(log.store, ModelRouter(), folder)).append
    name, base = log.conversation_id, len(events)
    await environment.run(
        work, Task[Record](conversation_id=name, user_id="local", base=base, step=step)
    )
    return [entry.event for entry in await log.read(0, 100)]


async def test_a_message_beside_a_change_of_secrets_leaves_the_prompt_that_tells_of_them(
    log: EventLog, tmp_path: Path
) -> None:
    items = (SpecChange(changes={"secrets": ["TICKETS"]}), UserMessage(text="Hi."))
    step = Record(items=items, from_inbox=2, spec_seq=1, prompt_seq=2)
    events = await record(log, tmp_path, step)
    prompts = [it.dynamic_context for it in events if isinstance(it, SystemPromptEvent)]
    assert prompts[-1] is not None
    assert "TICKETS" in prompts[-1].text


async def test_a_message_that_came_again_beside_a_pause_refuses_no_action(
    log: EventLog, tmp_path: Path
) -> None:
    step = Record(
        items=(UserMessage(text="Go on.", message_id="m"), PauseRequest()),
        from_inbox=2,
        refusal=Refusal(action_seqs=(4,), reason="Superseded by a new message of the user."),
        spec_seq=1,
        unsure_ids=("m",),
        ids_before=4,
    )
    events = await record(log, tmp_path, step, user(message_id="m"), action("look"))
    assert [it for it in events if isinstance(it, PauseEvent)]
    assert not [it for it in events if isinstance(it, UserRejectObservation)]


async def test_a_damaged_shared_value_is_told_and_ends_no_conversation(
    log: EventLog, tmp_path: Path
) -> None:
    await log.store.replace(user_state_prefix("local") + "tone.json", b"{")
    note = StateNote(key="state", value={"plan": 1, "user:tone": "dry"}, note_id="n")
    items = (note, StateNote(key="state", value={"step": 2}), UserMessage(text="Hi."))
    events = await record(
        log, tmp_path, Record(items=items, from_inbox=3, spec_seq=1, prompt_seq=2)
    )
    updates = [it for it in events if isinstance(it, ConversationStateUpdateEvent)]
    [refused] = [it.value for it in updates if it.key == "state_refused"]
    assert "user:tone: users/local/state/tone.json is not what was written" in refused["detail"]
    prompts = [it.dynamic_context for it in events if isinstance(it, SystemPromptEvent)]
    assert prompts[-1] is not None
    assert '"step": 2' in prompts[-1].text
