"""Conversations that count: no more of a user's work at once than the limit."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import WorkflowHandle

from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.events.control import InterruptEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import AgentErrorEvent, UserRejectObservation
from perdure.temporal.names import sessions_workflow_id
from tests.harness import ConversationHarness, remove_chunk_delay, text_answer, tool_call_answer
from tests.workflows.watching import events, notes, wait_for_growth, wait_for_status, wait_until

pytestmark = pytest.mark.long

LIMIT = 2

ENDLESS = {"content": "one two three", "chunk_delay": 60}
"""An answer that stays unfinished until it is stopped."""


def counting(harness: ConversationHarness, user_id: str) -> ConversationHarness:
    """Return the harness with a client as a gateway has it."""
    client = harness.client.as_user(user_id).with_session_limit(LIMIT)
    return replace(harness, client=client)


@pytest_asyncio.fixture
async def sessions(harness: ConversationHarness) -> AsyncIterator[ConversationHarness]:
    counts = counting(harness, "anna")
    async with counts.worker():
        yield counts


async def start_endless(harness: ConversationHarness, spec: Agent | None = None) -> Conversation:
    spec = spec or harness.spec(ENDLESS, text_answer("Gone on."))
    talk = await harness.client.start("Count.", spec)
    await wait_for_growth(talk, "llm.chat", "one")
    return talk


def sessions_of(client: Client) -> WorkflowHandle[Any, Any]:
    return client.temporal.get_workflow_handle(
        sessions_workflow_id(client.user_id, client.task_queue)
    )


async def suspensions(talk: Conversation) -> list[str | None]:
    return [event.reason for event in await events(talk, InterruptEvent)]


async def test_one_more_suspends_the_least_recently_active(sessions: ConversationHarness) -> None:
    first, second, third = [await start_endless(sessions) for _ in range(3)]
    status = await wait_for_status(first, "idle")
    assert status.reason is not None
    assert status.reason.startswith("suspended, as too many conversations")
    assert await suspensions(first) == ["too_many_conversations"]
    [suspension] = await events(first, InterruptEvent)
    assert suspension.source == "environment"
    assert [(await talk.status()).status for talk in (second, third)] == ["running"] * 2
    assert await suspensions(second) == await suspensions(third) == []
    [partial] = [it for it in await events(first, MessageEvent) if it.source == "agent"]
    assert partial.llm_message.content[0].text.startswith("one")


async def test_a_message_makes_a_suspended_conversation_go_on(
    sessions: ConversationHarness,
) -> None:
    spec = sessions.spec(ENDLESS, text_answer("Gone on."))
    first, second, third = [await start_endless(sessions, it) for it in (spec, None, None)]
    await wait_for_status(first, "idle")
    remove_chunk_delay(spec)
    await first.submit("Go on.", "m")
    assert (await first.wait_for_turn("m")).status == "finished"
    assert await suspensions(second) == ["too_many_conversations"]
    assert (await third.status()).status == "running"


async def test_of_those_that_begin_at_once_as_many_work_as_may(
    sessions: ConversationHarness,
) -> None:
    talks = await asyncio.gather(
        *(sessions.client.start("Count.", sessions.spec(ENDLESS)) for _ in range(3 * LIMIT))
    )

    async def list_suspended() -> list[Conversation]:
        return [talk for talk in talks if await suspensions(talk)]

    async with asyncio.timeout(60):
        while len(await list_suspended()) < 2 * LIMIT:
            await asyncio.sleep(0.05)
    working = [talk for talk in talks if talk not in await list_suspended()]
    for talk in working:
        await wait_for_status(talk, "running")
    assert [await suspensions(talk) for talk in talks].count([]) == LIMIT


async def test_a_message_counts_as_activity(sessions: ConversationHarness) -> None:
    first, second = [await start_endless(sessions) for _ in range(2)]
    await first.send("And hurry.")
    await start_endless(sessions)
    await wait_for_status(second, "idle")
    assert (await first.status()).status == "running"


async def test_one_at_rest_leaves_room(sessions: ConversationHarness) -> None:
    working = await start_endless(sessions)
    for _ in range(2 * LIMIT):
        talk = await sessions.client.start("Say hello.", sessions.spec(text_answer("Hello.")))
        assert (await talk.result()).status == "finished"
    confirming = sessions.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("Charged."),
        confirmation=Confirmation(policy="always"),
    )
    asking = await sessions.client.start("Charge.", confirming)
    [call] = (await wait_for_status(asking, "waiting_for_confirmation")).pending
    other = await start_endless(sessions)
    assert await suspensions(working) == await suspensions(asking) == []
    await asking.respond(True, [call.tool_call_id])
    assert (await asking.result()).status == "finished"
    assert await suspensions(working) == ["too_many_conversations"]
    assert await suspensions(other) == []


async def test_a_tool_at_work_is_stopped_and_its_output_kept(sessions: ConversationHarness) -> None:
    spec = sessions.spec(
        tool_call_answer(
            ("charge", {"amount": 5, "seconds": 60}), ("charge", {"amount": 6, "seconds": 0})
        ),
        text_answer("I will see."),
    )
    talk = await sessions.client.start("Charge.", spec)
    await wait_until(lambda: bool(notes(sessions, talk, "charged")))
    for _ in range(LIMIT):
        await start_endless(sessions)
    await wait_for_status(talk, "idle")
    [error] = await events(talk, AgentErrorEvent)
    assert "charged 5" in error.error
    [refused] = await events(talk, UserRejectObservation)
    assert "suspended" in refused.rejection_reason
    assert notes(sessions, talk, "charged") == ["5"]
    await talk.send("What now?", "m")
    assert (await talk.wait_for_turn("m")).status == "finished"


async def test_what_does_not_count_is_let_alone(
    harness: ConversationHarness, sessions: ConversationHarness
) -> None:
    uncounted = replace(sessions, client=sessions.client.with_session_limit(None))
    others = counting(harness, "somebody-else")
    let_alone = [await start_endless(uncounted), await start_endless(others)]
    first, *_ = [await start_endless(sessions) for _ in range(LIMIT + 1)]
    await wait_for_status(first, "idle")
    for talk in let_alone:
        assert (await talk.status()).status == "running"
        await talk.close()


async def test_a_lower_limit_suspends_more(sessions: ConversationHarness) -> None:
    running = [await start_endless(sessions) for _ in range(LIMIT)]
    lower = replace(sessions, client=sessions.client.with_session_limit(1))
    await start_endless(lower)
    for talk in running:
        await wait_for_status(talk, "idle")


async def test_notes_and_configuration_of_one_at_rest_ask_for_nothing(
    sessions: ConversationHarness,
) -> None:
    talk = await sessions.client.start("Say hello.", sessions.spec(text_answer("Hello.")))
    await talk.result()
    working = [await start_endless(sessions) for _ in range(LIMIT)]
    await talk.note(title="A greeting")
    await talk.configure({"tags": ["mine"]})
    await talk.interrupt()
    await talk.close()
    assert [await suspensions(it) for it in working] == [[], []]


async def test_a_conversation_interrupted_before_it_was_admitted_makes_no_room(
    sessions: ConversationHarness,
) -> None:
    """The sessions are stopped by an operator: a conversation waits, until its user gives up."""
    working = [await start_endless(sessions) for _ in range(LIMIT)]
    talk = await sessions.client.start("Count.", sessions.spec(ENDLESS))
    await talk.close()
    await talk.handle.result()
    await asyncio.sleep(0.5)
    suspended = [len(await suspensions(it)) for it in working]
    assert sum(suspended) <= 1  # it may have been admitted before


async def test_the_sessions_end_and_begin_again(sessions: ConversationHarness) -> None:
    first, second = [await start_endless(sessions) for _ in range(2)]
    handle = sessions_of(sessions.client)
    assert set(await handle.query("admitted", result_type=list[str])) == {first.id, second.id}
    await handle.terminate()  # an operator: nothing is left that counts
    third = await start_endless(sessions)
    handle = sessions_of(sessions.client)
    assert await handle.query("admitted", result_type=list[str]) == [third.id]


@pytest.mark.parametrize("sent", [[], ["x"], [{"limit": 0}], [1, 2]])
async def test_a_bad_signal_changes_nothing(sessions: ConversationHarness, sent: list[Any]) -> None:
    talk = await start_endless(sessions)
    handle = sessions_of(sessions.client)
    for name in ("ask", "leave"):
        await handle.signal(name, args=sent)
    for name in ("admit", "suspend"):
        await talk.handle.signal(name, args=sent)
    assert await handle.query("admitted", result_type=list[str]) == [talk.id]
    assert (await talk.status()).status == "running"
    with contextlib.suppress(TimeoutError):
        await talk.close()
