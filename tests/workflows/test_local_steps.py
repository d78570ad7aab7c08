"""Brief steps run as local activities, inside the workflow task, and nothing is lost by it."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from perdure.agent.loop.state import State
from perdure.agent.loop.steps import SaveState
from perdure.agent.spec import Agent
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.events.control import InterruptEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.operations.worker import process
from perdure.secrets.registry import Secrets
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.temporal.converter import CONVERTER
from perdure.workflows.local_steps import LocalSteps
from tests.example_tools import PAUSES
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.workers import worker_process
from tests.workflows.watching import (
    entries,
    events,
    notes,
    observations,
    wait_for_status,
    wait_until,
)

T = TypeVar("T")

SECRET = "hunter2hunter2"


def local(harness: ConversationHarness, *answers: dict[str, Any], **fields: Any) -> Agent:
    """Return an agent whose tools all claim to be brief, where they may be called again."""
    tools = ("tests.example_tools:BRIEF_TOOLS", "think", "finish")
    return harness.spec(*answers, tools=tools, local_activities=True, **fields)


def look(seconds: float) -> dict[str, Any]:
    return tool_call_answer(("look", {"seconds": seconds}))


async def history(talk: Conversation) -> list[HistoryEvent]:
    return list((await talk.handle.fetch_history()).events)


async def steps(talk: Conversation) -> list[str]:
    """Return the steps of a conversation in order, the local ones with a star."""
    found = []
    for event in await history(talk):
        if event.HasField("activity_task_scheduled_event_attributes"):
            found.append(event.activity_task_scheduled_event_attributes.activity_type.name)
        elif event.HasField("marker_recorded_event_attributes"):
            data = event.marker_recorded_event_attributes.details["data"].payloads[0]
            found.append("*" + CONVERTER.payload_converter.from_payload(data)["activity_type"])
    return found


async def test_a_brief_call_and_the_saving_are_no_activities_of_their_own(
    harness: ConversationHarness,
) -> None:
    add = tool_call_answer(("add", {"a": 1, "b": 2}))
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, add, add, text_answer("done")))
        await talk.wait_for_turn()
        await talk.close()
        await talk.handle.result()
    assert await observations(talk) == ["3", "3"]
    taken = await steps(talk)
    assert taken[:6] == ["log.open", "llm.chat", "*tool.call", "llm.chat", "*tool.call", "llm.chat"]
    assert taken[-1] == "*conversation.close"
    assert (await talk.state()).status == "closed"


async def test_a_pause_within_a_brief_call_takes_effect_before_the_model_is_asked_again(
    harness: ConversationHarness,
) -> None:
    PAUSES.append(lambda name: harness.client.conversation(name).pause())
    spec = local(harness, tool_call_answer(("pause_itself", {})), text_answer("done"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "paused")
        assert "*tool.call" in await steps(talk)
        assert event_kinds(await entries(talk))[-2:] == ["ObservationEvent", "PauseEvent"]
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert event_kinds(await entries(talk))[-1] == "MessageEvent"


async def test_of_an_agent_that_did_not_ask_for_it_the_saving_alone_is_local(
    harness: ConversationHarness,
) -> None:
    add = tool_call_answer(("add", {"a": 1, "b": 2}))
    spec = harness.spec(add, text_answer("done"), tools=("tests.example_tools:BRIEF_TOOLS",))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()
        await wait_until_saved(talk)
        await talk.close()
        await talk.handle.result()
    taken = await steps(talk)
    assert [step for step in taken if step.startswith("*")] == ["*conversation.save"]
    assert taken[-1] == "conversation.close"


async def test_what_an_earlier_worker_began_goes_on_and_saves_locally_from_then_on(
    harness: ConversationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of both versions may serve a queue: a replay decides as the worker of each task."""
    talk = await harness.client.start("go", harness.spec(text_answer("1"), text_answer("2")))
    with monkeypatch.context() as before:
        before.setattr(process, "make_build_id", lambda version: version)
        async with harness.worker():
            await talk.wait_for_turn()
            await wait_until_saved(talk)
    assert (await steps(talk))[-1] == "conversation.save"
    async with harness.worker():
        await talk.send("go on", message_id="m")
        await talk.wait_for_turn("m")
        await wait_until_saved(talk)
    assert [step for step in await steps(talk) if "save" in step] == [
        "conversation.save",
        "*conversation.save",
    ]
    failed = [
        event for event in await history(talk) if "FAILED" in EventType.Name(event.event_type)
    ]
    assert failed == []


def test_a_conversation_with_a_repository_saves_in_an_activity(
    harness: ConversationHarness,
) -> None:
    """All files of its workspace are looked at, which may take longer than a task should."""
    spec = harness.spec(repository="https://example.com/a.git")
    state = State(spec=spec)
    assert not LocalSteps().may_run_locally([SaveState(state=state)], state)


async def wait_until_saved(talk: Conversation) -> None:
    """Wait until the history shows that the state of the last event was saved."""
    async with asyncio.timeout(60):
        while "save" not in (await steps(talk))[-1]:
            await asyncio.sleep(0.05)


async def test_a_call_with_effects_is_an_activity_also_beside_a_brief_one(
    harness: ConversationHarness,
) -> None:
    """A brief call beside it would keep its activity from being scheduled."""
    both = tool_call_answer(
        ("charge", {"amount": 5, "seconds": 0}),
        ("add", {"a": 1, "b": 2}),
        ("add", {"a": 1, "b": 3}),
    )
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, both, text_answer("done")))
        await talk.wait_for_turn()
    taken = [step for step in await steps(talk) if "tool.call" in step]
    assert taken == ["tool.call", "*tool.call", "*tool.call"]
    assert notes(harness, talk, "charged") == ["5"]


async def test_calls_one_after_the_other_let_signals_in_between(
    harness: ConversationHarness,
) -> None:
    """Only the first one of a workflow task is local: an activity ends the task."""
    four = tool_call_answer(*[("look", {"seconds": 0})] * 4)
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, four, text_answer("done")))
        await talk.wait_for_turn()
    taken = [step for step in await steps(talk) if "tool.call" in step]
    assert taken == ["*tool.call", "tool.call", "*tool.call", "tool.call"]
    assert len(notes(harness, talk, "looked")) == 4


@pytest.mark.long
async def test_a_pause_during_a_local_call_takes_effect_behind_it(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, look(0.6), text_answer("done")))
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        await talk.pause()
        await wait_for_status(talk, "paused")
        paused = event_kinds(await entries(talk))
        await talk.resume()
        await wait_for_status(talk, "finished")
    assert paused[-2:] == ["ObservationEvent", "PauseEvent"]
    assert "*tool.call" in await steps(talk)


async def test_a_message_during_a_local_call_reaches_the_next_request(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, look(0.6), text_answer("done")))
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        await talk.send("and another thing", message_id="m")
        await talk.wait_for_turn("m")
    log = [entry.event for entry in await entries(talk)]
    [answer] = [e for e in log if isinstance(e, MessageEvent) and e.source == "agent"]
    [second] = [e for e in log if isinstance(e, MessageEvent) and e.message_id == "m"]
    assert log.index(second) < log.index(answer)


async def test_an_interrupt_during_a_local_call_ends_the_turn_behind_it(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, look(0.6), text_answer("done")))
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        await talk.handle.signal("interrupt")
        await wait_for_status(talk, "idle")
    assert len(await events(talk, InterruptEvent)) == 1
    assert len(notes(harness, talk, "looked")) == 1
    assert [e for e in await events(talk, MessageEvent) if e.source == "agent"] == []


async def test_a_tool_that_is_not_brief_is_called_by_activities_from_then_on(
    harness: ConversationHarness,
) -> None:
    spec = local(harness, look(0.3), look(0), look(0), text_answer("done"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await talk.wait_for_turn()
    taken = [step for step in await steps(talk) if "tool.call" in step]
    assert taken == ["*tool.call", "tool.call", "tool.call"]
    assert len(notes(harness, talk, "looked")) == 3


@pytest.mark.long
async def test_a_call_over_the_limit_is_begun_again_as_an_activity_and_answered_once(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, look(1.6), text_answer("done")))
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    assert [step for step in await steps(talk) if "tool.call" in step] == [
        "*tool.call",
        "tool.call",
    ]
    assert len(notes(harness, talk, "looked")) == 2
    assert await observations(talk) == ["seen"]


@pytest.mark.long
async def test_a_late_local_attempt_beside_its_activity_answers_only_once(
    harness: ConversationHarness,
) -> None:
    """The tool does not stop at the limit: its answer comes while the activity is at work."""
    dawdling = tool_call_answer(("dawdle", {"seconds": 1.5}))
    async with harness.worker():
        talk = await harness.client.start("go", local(harness, dawdling, text_answer("done")))
        state = await talk.wait_for_turn()
        await asyncio.sleep(0.5)
    assert state.status == "finished"
    assert len(notes(harness, talk, "dawdled")) == 2
    answers = [e for e in await entries(talk) if isinstance(e.event, ObservationEvent)]
    assert len(answers) == 1
    assert await observations(talk) == ["looked 2 times"]  # both had begun when the first one ended


class MuteStore(FileStore):
    """A store that does not answer while it is `away`, and then names a secret."""

    away = False

    async def _in_thread(self, work: Callable[[Path], T], path: Path) -> T:
        if self.away:
            raise StoreUnavailable(f"The store does not take the key {SECRET}.")
        return await super()._in_thread(work, path)


@pytest.mark.long
async def test_a_local_call_does_not_wait_for_the_store_and_tells_no_secret(
    harness: ConversationHarness,
) -> None:
    store = MuteStore(harness.folder / "store")
    folder = harness.folder / "secrets"
    folder.mkdir(mode=0o700)
    (folder / "PASSWORD").write_text(SECRET)
    secrets = Secrets(folder)
    harness.resources = dataclasses.replace(harness.resources, store=store, secrets=secrets)
    async with harness.worker():
        spec = local(harness, look(0.6), text_answer("done"))
        talk = await harness.client.start("go", spec)
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        store.away = True
        async with asyncio.timeout(30):
            while not (await talk.handle.describe()).raw_description.pending_activities:
                await asyncio.sleep(0.05)
        assert (await talk.status()).status == "running"  # the workflow answers
        store.away = False
        await talk.wait_for_turn()
    assert await observations(talk) == ["seen"]
    texts = [event.SerializeToString() for event in await history(talk)]
    assert any(b"The store does not take the key" in text for text in texts)
    assert not any(SECRET.encode() in text for text in texts)


@pytest.mark.long
async def test_a_local_call_whose_worker_is_killed_is_made_again_and_answered_once(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("go", local(harness, look(0.9), text_answer("done")))
        await wait_until(lambda: bool(notes(harness, talk, "looked")))
        worker.kill()
        await talk.pause()  # what the next attempt finds differs from what the first one saw
        with worker_process(environment, harness.folder / "two.log"):
            await wait_for_status(talk, "paused")
            await talk.resume()
            await talk.wait_for_turn()
            await wait_for_status(talk, "finished")
    assert await observations(talk) == ["seen"]
    assert event_kinds(await entries(talk)).count("PauseEvent") == 1
