"""Pause and close, limits of time, users, and what a lost workflow or a long history change."""

import asyncio
from dataclasses import replace

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec
from perdure.agent.discussion.steps import speaker_conversation_id, step_event_id
from perdure.agent.policies import Confirmation
from perdure.secrets.registry import Secrets
from perdure.storage.discussions.service import EventLogService
from tests.harness import ConversationHarness, tool_call_answer
from tests.workflows.discussion.debate import (
    PASS,
    Answer,
    Handle,
    ballot,
    debate,
    lines,
    paused_debate,
    read_all,
    start,
    status_of,
    wants,
)
from tests.workflows.watching import wait_for_status

ENDLESS: Answer = {"content": "one two three", "chunk_delay": 60}


async def wait_until_speaking(handle: Handle, *speakers: str) -> None:
    async with asyncio.timeout(60):
        while set((await status_of(handle)).speaking) != set(speakers):
            await asyncio.sleep(0.05)


async def test_a_paused_discussion_goes_on_when_it_is_resumed(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        handle = await paused_debate(harness, [wants(1), "At last."])
        events = await read_all(harness, (await status_of(handle)).session_id)
        assert [event.action for event in events] == ["OPENED"]
        await handle.signal("resume")
        result = await handle.result()
    assert (result.status, result.speeches) == ("finished", {"ada": 1})


@pytest.mark.long
async def test_the_time_of_a_turn_stands_still_in_a_pause(harness: ConversationHarness) -> None:
    thought: Answer = {
        "tool_calls": [{"name": "think", "arguments": {"thought": "well"}}],
        "delay": 1,
    }
    spec = debate(
        harness.folder,
        {"ada": [wants(1), thought, "I have thought."]},
        tools={"ada": ["think"]},
        limits={"turn_time": 3},
    )
    async with harness.worker():
        handle = await start(harness, spec)
        while "GRANT" not in await events_of(harness, handle):
            await asyncio.sleep(0.02)
        await wait_until_speaking(handle, "ada")
        await handle.signal("pause")
        await asyncio.sleep(5)
        assert (await status_of(handle)).speaking == ("ada",)
        await handle.signal("resume")
        result = await handle.result()
    assert result.speeches == {"ada": 1}
    assert "PASSED_OVER" not in await events_of(harness, handle)


async def test_secrets_are_masked_in_the_shared_log(harness: ConversationHarness) -> None:
    secrets = Secrets(environment={"PERDURE_SECRET_TOKEN": "sesame-4711"})
    masking = replace(harness, resources=replace(harness.resources, secrets=secrets))
    spec = debate(harness.folder, {"ada": [wants(1, "sesame-4711!"), "It is sesame-4711."]})
    async with masking.worker():
        handle = await start(masking, spec, is_paused=True)
        await handle.signal("say", {"content": "Is it sesame-4711?", "speaker": "eve"})
        await handle.signal("resume")
        result = await handle.result()
    events = await read_all(masking, result.session_id)
    text = "\n".join(lines(events))
    assert "sesame-4711" not in text
    assert len([event for event in events if event.type in ("INTENT", "SPEECH")]) == 3
    assert "sesame-4711" not in result.model_dump_json()


async def test_closing_interrupts_who_speaks_and_says_so_in_the_log(
    harness: ConversationHarness,
) -> None:
    spec = debate(harness.folder, {"ada": [wants(1), ENDLESS], "bob": [PASS]})
    async with harness.worker():
        handle = await start(harness, spec)
        while not [event for event in await events_of(harness, handle) if event == "GRANT"]:
            await asyncio.sleep(0.05)
        await wait_until_speaking(handle, "ada")  # also of whom is asked, before a grant
        await handle.signal("close")
        result = await handle.result()
        with pytest.raises((WorkflowUpdateFailedError, Exception), match=r"over|completed"):
            await handle.execute_update("contribute", {"content": "late", "speaker": "eve"})
    assert (result.status, result.reason) == ("closed", "it was closed")
    assert (await events_of(harness, handle))[-1] == "CLOSED"
    assert result.speeches == {"ada": 0}


async def test_a_cancelled_discussion_is_closed(harness: ConversationHarness) -> None:
    spec = debate(harness.folder, {"ada": [ENDLESS]})
    async with harness.worker():
        handle = await start(harness, spec)
        await wait_until_speaking(handle, "ada")
        await handle.cancel()
        result = await handle.result()
        assert result.status == "closed"
        assert (await events_of(harness, handle))[-1] == "CLOSED"
        key = DiscussionKey(user_id="local", session_id=result.session_id)
        ada = harness.client.conversation(speaker_conversation_id(key, "ada"))
        await wait_for_status(ada, "idle")


@pytest.mark.long
async def test_the_time_of_a_discussion_interrupts_who_speaks(
    harness: ConversationHarness,
) -> None:
    spec = debate(harness.folder, {"ada": [wants(1), ENDLESS]}, limits={"time": 3})
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    assert (result.status, result.reason) == ("finished", "its 3 seconds are over")


@pytest.mark.long
async def test_a_long_discussion_continues_as_new_and_its_log_is_the_same(
    harness: ConversationHarness,
) -> None:
    spec = long_debate(harness)
    async with harness.worker():
        whole = await start(harness, spec, session_id="whole")
        cut = await start(harness, spec, session_id="cut", max_run_events=30)
        results = [await whole.result(), await cut.result()]
    described = await harness.client.temporal.get_workflow_handle(cut.id).describe()
    assert described.run_id != cut.first_execution_run_id
    assert results[0].speeches == results[1].speeches
    logs = [lines(await read_all(harness, name)) for name in ("whole", "cut")]
    assert logs[0] == logs[1]


@pytest.mark.long
async def test_a_workflow_that_was_lost_is_started_again_and_repeats_nothing(
    harness: ConversationHarness,
) -> None:
    spec = long_debate(harness, speech_delay=1.0)
    async with harness.worker():
        undisturbed = await start(harness, spec, session_id="undisturbed")
        await undisturbed.result()
        lost = await start(harness, spec, session_id="lost")
        while "SPEECH" not in [event.type for event in await read_all(harness, "lost")]:
            await asyncio.sleep(0.02)
        await wait_until_speaking(lost, "bob")
        await lost.terminate()  # while bob's model is at work
        result = await (await start(harness, spec, session_id="lost")).result()
    assert result.status == "finished"
    logs = [lines(await read_all(harness, name)) for name in ("undisturbed", "lost")]
    assert logs[0] == logs[1]
    for name in ("ada", "bob", "cyd"):
        turns = [await turns_of(harness, session, name) for session in ("undisturbed", "lost")]
        assert turns[0] == turns[1]


async def test_a_discussion_and_its_conversations_belong_to_their_user(
    harness: ConversationHarness,
) -> None:
    anna = replace(harness, client=harness.client.as_user("anna"))
    spec = debate(harness.folder, {"ada": [wants(1), "I am here."]})
    async with harness.worker():
        handle = await start(anna, spec)
        assert handle.id.startswith("discussion-anna:")
        result = await handle.result()
    assert "SPEECH ada: I am here." in lines(await read_all(anna, result.session_id))
    assert await read_all(harness, result.session_id) == []
    folders = await harness.client.store.folders("users/")
    assert folders == ["anna"]


async def test_the_workflow_of_another_user_reaches_nothing(harness: ConversationHarness) -> None:
    """The id of the workflow says whose it is, whatever its input names."""
    anna = replace(harness, client=harness.client.as_user("anna"))
    async with harness.worker():
        handle = await start(anna, debate(harness.folder, {"ada": [PASS]}))
        await handle.result()
        key = {"user_id": "anna", "session_id": handle.id.partition(":")[2]}
        theft = await harness.client.temporal.start_workflow(
            "Discussion",
            {"key": key},
            id=f"discussion-bea:{key['session_id']}",
            task_queue=harness.client.task_queue,
        )
        with pytest.raises(WorkflowFailureError):
            await theft.result()


async def turns_of(harness: ConversationHarness, session_id: str, speaker: str) -> int:
    key = DiscussionKey(user_id=harness.client.user_id, session_id=session_id)
    conversation = harness.client.conversation(speaker_conversation_id(key, speaker))
    return (await conversation.state()).turn


def long_debate(harness: ConversationHarness, speech_delay: float = 0) -> DiscussionSpec:
    def speech(text: str) -> Answer:
        return {"content": text, "delay": speech_delay}

    return debate(
        harness.folder,
        {
            name: [*[wants(n), speech(f"{name} on n.")] * 2, PASS, ballot("yes")]
            for n, name in enumerate(("ada", "bob", "cyd"))
        },
        phases=[{"name": "talk", "rounds": 2}, {"name": "decision", "end": "vote"}],
        prune=None,
    )


async def events_of(harness: ConversationHarness, handle: Handle) -> list[str | None]:
    """Return the actions of SYSTEM events in the log, and None for every other event."""
    session_id = handle.id.removeprefix("discussion-")
    service = EventLogService(harness.client.store, harness.client.user_id)
    return [event.action for event in await service.get_recent_events(session_id, 100)]


async def test_a_log_that_does_not_take_the_step_ends_the_workflow_with_the_reason(
    harness: ConversationHarness,
) -> None:
    """Somebody has written under the id of a step: no retry helps."""
    service = EventLogService(harness.client.store)
    async with harness.worker():
        handle = await paused_debate(harness, [wants(1), "never"])
        key = DiscussionKey(user_id="local", session_id=(await status_of(handle)).session_id)
        taken = step_event_id(key, "0 intent", 0)
        await service.append_event(key.session_id, "VOTE", "ada", "yes", event_id=taken)
        await handle.signal("resume")
        with pytest.raises(WorkflowFailureError) as caught:
            async with asyncio.timeout(60):
                await handle.result()
    assert taken in str(caught.value.cause.cause)  # type: ignore[attr-defined]


async def test_a_damaged_log_ends_the_workflow_with_the_reason(
    harness: ConversationHarness,
) -> None:
    store = harness.client.store
    async with harness.worker():
        handle = await paused_debate(harness, [PASS])
        key = f"users/local/discussions/{(await status_of(handle)).session_id}/events/000001.json"
        await store.replace(key, b"{}")
    harness = replace(harness, resources=replace(harness.resources))  # with an empty cache
    async with harness.worker():
        await handle.signal("resume")
        with pytest.raises(WorkflowFailureError) as caught:
            async with asyncio.timeout(60):
                await handle.result()
    assert "000001.json from a backup" in str(caught.value.cause.cause)  # type: ignore[attr-defined]


async def test_closing_ends_a_turn_that_is_paused(harness: ConversationHarness) -> None:
    thought: Answer = {
        "tool_calls": [{"name": "think", "arguments": {"thought": "well"}}],
        "delay": 1,
    }
    spec = debate(
        harness.folder, {"ada": [wants(1), thought, "Never said."]}, tools={"ada": ["think"]}
    )
    async with harness.worker():
        handle = await start(harness, spec)
        while "GRANT" not in await events_of(harness, handle):
            await asyncio.sleep(0.02)
        await wait_until_speaking(handle, "ada")
        await handle.signal("pause")
        key = DiscussionKey(user_id="local", session_id=(await status_of(handle)).session_id)
        await wait_for_status(
            harness.client.conversation(speaker_conversation_id(key, "ada")), "paused"
        )
        await handle.signal("close")
        async with asyncio.timeout(30):
            result = await handle.result()
    assert (result.status, result.speeches) == ("closed", {"ada": 0})


@pytest.mark.long
async def test_a_turn_that_waits_for_a_confirmation_too_long_is_passed_over(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {"ada": [wants(1), tool_call_answer(("add", {"a": 1, "b": 1})), "Never said."]},
        tools={"ada": ["tests.example_tools:TOOLS"]},
        limits={"turn_time": 3},
    )
    [ada] = spec.agents
    agent = ada.agent.model_copy(update={"confirmation": Confirmation(policy="always")})
    spec = spec.model_copy(update={"agents": (ada.model_copy(update={"agent": agent}),)})
    async with harness.worker():
        handle = await start(harness, spec)
        async with asyncio.timeout(60):
            result = await handle.result()
    assert (result.status, result.speeches) == ("finished", {"ada": 0})
    assert "PASSED_OVER" in await events_of(harness, handle)
