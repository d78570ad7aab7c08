"""A conversation waits for a time, for a signal and for a person."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from perdure.agent.loop.start import RecordedSignal
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.client.conversation import Conversation
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.tools import ObservationEvent, UserRejectObservation
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer
from tests.workflows.watching import entries, events, observations, wait_for_status

TOOLS = ("wait", "ask_user", "tests.example_tools:BRIEF_TOOLS", "think", "finish")

QUESTION = {"question": "Which colour?", "choices": ["red", "blue"]}


def waiting_spec(harness: ConversationHarness, *calls: tuple[str, Any], **fields: Any) -> Agent:
    answers = [tool_call_answer(call) for call in calls]
    return harness.spec(*answers, text_answer("done"), **{"tools": TOOLS, **fields})


async def signal(talk: Conversation, name: str, **fields: Any) -> RecordedSignal:
    return await talk.signal(name, **fields)


async def update_error(talk: Conversation, update: str, argument: Any) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failed:
        await talk.handle.execute_update(update, argument)
    return str(failed.value.cause)


async def test_a_wait_ends_at_its_time_by_a_timer_and_no_activity(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        spec = waiting_spec(harness, ("wait", {"for": "2s"}))
        talk = await harness.client.start("go", spec)
        now = await wait_for_status(talk, "waiting")
        assert now.detail is not None
        assert now.detail.wait is not None
        assert now.detail.wait.until is not None
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    [wait] = await events(talk, WaitEvent)
    [result] = await events(talk, ObservationEvent)
    assert wait.until is not None
    waited = moment(wait.until) - moment(wait.timestamp)
    assert waited == timedelta(seconds=2)
    assert moment(result.timestamp) >= moment(wait.until)
    assert result.ended_by == "time"
    history = await talk.handle.fetch_history()
    names = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert "tool.call" not in names


@pytest.mark.parametrize("local", [False, True], ids=["ordinary calls", "local calls"])
async def test_a_signal_ends_a_wait_and_its_data_is_in_the_result(
    harness: ConversationHarness, local: bool
) -> None:
    async with harness.worker():
        wait = ("wait", {"signal": "paid", "for": "1w"})
        spec = waiting_spec(harness, wait, local_activities=local)
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "waiting")
        sent = await signal(talk, "paid", data={"amount": 12}, signal_id="invoice-7")
        again = await signal(talk, "paid", data={"amount": 13}, signal_id="invoice-7")
        state = await talk.wait_for_turn()
    assert (sent.taken, again.seq) == (True, sent.seq)
    assert (state.status, state.signals, state.wait) == ("finished", (), None)
    [recorded] = await events(talk, SignalEvent)
    assert recorded.data == {"amount": 12}
    assert '"amount": 12' in (await observations(talk))[0]


async def test_a_signal_that_comes_before_the_wait_is_kept_for_it(
    harness: ConversationHarness,
) -> None:
    calls = [("wait", {"signal": "paid"}), ("wait", {"signal": "sent"})]
    async with harness.worker():
        talk = await harness.client.start("go", waiting_spec(harness, *calls))
        await wait_for_status(talk, "waiting")
        assert not (await signal(talk, "sent", data=1)).taken
        assert (await signal(talk, "paid")).taken
        state = await talk.wait_for_turn()
    assert (state.status, state.signals) == ("finished", ())
    first, second = await observations(talk)
    assert "'paid' came" in first
    assert "without data" in first
    assert "'sent' came" in second


@pytest.mark.long
async def test_no_more_signals_are_kept_than_fit_and_the_sender_is_told(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", waiting_spec(harness, ("wait", {"signal": "x"})))
        await wait_for_status(talk, "waiting")
        for first in range(0, 50, 5):  # Temporal takes ten updates at once
            await asyncio.gather(*(signal(talk, f"s{first + nth}") for nth in range(5)))
        error = await update_error(talk, "submit_signal", {"name": "s50"})
        assert (await signal(talk, "x")).taken
        state = await talk.wait_for_turn()
    assert "keeps 50 signals already" in error
    assert len(state.signals) == 50
    assert state.status == "finished"


async def test_a_person_answers_a_question_by_a_choice(harness: ConversationHarness) -> None:
    spec = waiting_spec(harness, ("ask_user", {**QUESTION, "for": "1d"}))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        now = await wait_for_status(talk, "waiting_for_answer")
        assert now.detail is not None
        assert now.detail.wait is not None
        assert now.detail.wait.question == "Which colour?"
        assert now.detail.wait.choices == ("red", "blue")
        wrong = await update_error(talk, "answer", {"choice": "green"})
        call = await update_error(talk, "answer", {"text": "red", "call": "call_9"})
        assert await talk.answer(choice="blue") == "blue"
        state = await talk.wait_for_turn()
        late = await update_error(talk, "answer", {"text": "red"})
    assert state.status == "finished"
    assert "'green' is none of the choices ('red', 'blue')" in wrong
    assert "No question 'call_9' waits" in call
    assert "No question waits for an answer" in late
    assert await observations(talk) == ["The user answers: blue"]
    [asked] = await events(talk, QuestionEvent)
    assert asked.choices == ("red", "blue")


@pytest.mark.parametrize("call", [("wait", {"for": "1d"}), ("ask_user", QUESTION)])
async def test_a_message_ends_a_wait_early(
    harness: ConversationHarness, call: tuple[str, Any]
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", waiting_spec(harness, call))
        await wait_for_status(talk, "waiting", "waiting_for_answer")
        await talk.send("green", run=False, message_id="only recorded")
        await wait_until_logged(talk, "only recorded")
        assert (await talk.status()).status in ("waiting", "waiting_for_answer")
        await talk.send("blue", message_id="m")
        state = await talk.wait_for_turn("m")
    assert state.status == "finished"
    [result] = await events(talk, ObservationEvent)
    assert result.ended_by == "message"
    kinds = event_kinds(await entries(talk))
    assert kinds[kinds.index("ObservationEvent") + 1] == "MessageEvent"


async def test_nobody_answers_until_the_deadline_of_a_question(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        spec = waiting_spec(harness, ("ask_user", {**QUESTION, "for": "1s"}))
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "waiting_for_answer", "finished")
        await wait_for_status(talk, "finished")
    [text] = await observations(talk)
    assert text.startswith("Nobody answered until ")


async def test_an_interrupt_ends_a_wait_and_the_agent_rests(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", waiting_spec(harness, ("wait", {"for": "1d"})))
        await wait_for_status(talk, "waiting")
        await talk.interrupt()
        now = await wait_for_status(talk, "idle")
        state = await talk.state()
    assert now.reason == "interrupted by the user"
    assert (state.pending, state.wait) == ((), None)
    assert len(await events(talk, UserRejectObservation)) == 1


@pytest.mark.long
async def test_a_pause_keeps_the_wait_and_its_end(harness: ConversationHarness) -> None:
    async with harness.worker():
        spec = waiting_spec(harness, ("wait", {"for": "2s", "signal": "x"}))
        talk = await harness.client.start("go", spec)
        before = await wait_for_status(talk, "waiting")
        await talk.pause()
        await wait_for_status(talk, "paused")
        await talk.resume()
        after = await wait_for_status(talk, "waiting", "finished")
        if after.status == "waiting":
            assert after.detail == before.detail
        await talk.pause()
        await wait_for_status(talk, "paused")
        await asyncio.sleep(2.5)
        assert (await talk.status()).status == "paused"
        await talk.resume()
        state = await talk.wait_for_turn()
    assert state.status == "finished"
    [result] = await events(talk, ObservationEvent)
    assert result.ended_by == "time"


async def test_a_wait_goes_on_through_a_change_of_the_agent_until_it_is_closed(
    harness: ConversationHarness,
) -> None:
    spec = waiting_spec(harness, ("ask_user", QUESTION), confirmation=Confirmation(policy="always"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "waiting_for_answer")
        await talk.configure({"limits": {"max_iterations": 7}})
        assert (await talk.status()).status == "waiting_for_answer"
        await talk.close()
        await wait_for_status(talk, "closed")
    assert len(await events(talk, UserRejectObservation)) == 1


@pytest.mark.long
async def test_the_deadline_of_a_conversation_ends_its_turn_and_not_its_wait(
    harness: ConversationHarness,
) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%S.%f")
    spec = waiting_spec(harness, ("wait", {"signal": "x"}), limits={"deadline": soon})
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        now = await wait_for_status(talk, "error")
        assert now.reason is not None
        assert now.reason.startswith("deadline: ")
        await talk.configure({"limits": {"deadline": None}})
        await talk.resume()
        await wait_for_status(talk, "waiting")
        await signal(talk, "x")
        assert (await talk.wait_for_turn()).status == "finished"


async def test_a_wait_outlives_its_worker_its_workflow_and_the_idle_time(
    harness: ConversationHarness,
) -> None:
    spec = waiting_spec(harness, ("wait", {"signal": "x"}), idle_timeout=0.5, finished_timeout=0.5)
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        await wait_for_status(talk, "waiting")
        await asyncio.sleep(1.5)
    assert await talk.workflow.is_running()
    async with harness.worker():
        await talk.handle.terminate("lost")
        await talk.resume()
        await wait_for_status(talk, "waiting")
        sent = await signal(talk, "x")
        state = await talk.wait_for_turn()
    assert sent.taken
    assert state.status == "finished"
    runs = [it for it in await events(talk, ConversationStateUpdateEvent) if it.key == "opened"]
    assert len(runs) == 2


async def wait_until_logged(talk: Conversation, message_id: str) -> None:
    async with asyncio.timeout(60):
        while message_id not in (await talk.state()).message_seqs:
            await asyncio.sleep(0.05)


def moment(timestamp: str) -> datetime:
    return datetime.fromisoformat(f"{timestamp}+00:00")
