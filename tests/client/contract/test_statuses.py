"""What a client is told of a conversation's status, in the order in which things happen."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from perdure import Agent, AgentErrorEvent, ConversationStateUpdateEvent, McpServer
from perdure.client.protocol import ConversationHandle
from tests import mcp_server
from tests.client.contract.clients import Clients
from tests.harness import text_answer, tool_call_answer
from tests.tools.mcp_calling import stdio_server

SERVER = f"{sys.executable} {mcp_server.__file__}"

SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


async def statuses_until(
    conversation: ConversationHandle,
    *ends: str,
    on_event: Callable[[ConversationStateUpdateEvent], Awaitable[None]] | None = None,
) -> list[ConversationStateUpdateEvent]:
    events = []
    async with asyncio.timeout(60), aclosing(conversation.statuses()) as statuses:  # type: ignore[type-var]
        async for event in statuses:
            events.append(event)
            if on_event is not None:
                await on_event(event)
            if event.value in ends:
                break
    return events


def values(events: list[ConversationStateUpdateEvent]) -> list[str]:
    """Return the statuses, each once where several events in a row have it."""
    seen = [str(event.value) for event in events]
    return [value for nth, value in enumerate(seen) if nth == 0 or seen[nth - 1] != value]


def names_loading(event: ConversationStateUpdateEvent) -> set[str | None]:
    detail = event.status_detail
    return {each.name for each in detail.loading} if detail else set()


async def run_to(clients: Clients, agent: Agent, *ends: str) -> list[ConversationStateUpdateEvent]:
    async with clients.harness.worker():
        conversation = await clients.anna.start("Go.", agent)
        return await statuses_until(conversation, *ends)


async def test_words_await_the_user_and_finish_does_not(clients: Clients) -> None:
    spoken, finished = text_answer("Which one?"), tool_call_answer(("finish", {"message": "Done."}))
    async with clients.harness.worker():
        conversation = await clients.anna.start("Go.", clients.harness.spec(spoken, finished))
        asked = await conversation.result()
        await conversation.send("That one.")
        done = await conversation.result()
        [event] = await statuses_until(conversation, "finished")
    assert (asked.status, asked.phase, asked.text) == ("finished", "awaiting_user", "Which one?")
    assert (done.status, done.phase, done.outputs) == ("finished", "finished", None)
    assert (event.key, event.status_detail) == ("status", None)


async def test_outputs_fit_the_schema_of_the_agent(clients: Clients) -> None:
    wrong = tool_call_answer(("finish", {"message": "It is 5.", "outputs": {"sum": "five"}}))
    right = tool_call_answer(("finish", {"message": "It is 5.", "outputs": {"sum": 5}}))
    agent = clients.harness.spec(wrong, right, response_schema=SCHEMA)
    async with clients.harness.worker():
        conversation = await clients.anna.start("2 + 3?", agent)
        result = await conversation.result()
        events = [event async for event in conversation.turn()]
    [error] = [event.error for event in events if isinstance(event, AgentErrorEvent)]
    assert (result.text, result.outputs) == ("It is 5.", {"sum": 5})
    assert "`outputs.sum`: 'five' is not of type 'integer'" in error


async def test_a_refused_task_is_rejected_with_its_reason(clients: Clients) -> None:
    refusal = tool_call_answer(("reject_task", {"reason": "It would delete your backups."}))
    agent = clients.harness.spec(refusal, tools=("finish", "reject_task"))
    async with clients.harness.worker():
        conversation = await clients.anna.start("Tidy up.", agent)
        result = await conversation.result()
        [event] = await statuses_until(conversation, "rejected")
    assert (result.phase, result.text) == ("rejected", "It would delete your backups.")
    assert event.status_detail is not None
    assert event.status_detail.reason == "It would delete your backups."


async def test_a_limit_says_which_and_how_to_go_on(clients: Clients) -> None:
    agent = clients.harness.spec(
        tool_call_answer(("think", {"thought": "Hm."})), limits={"max_iterations": 1}
    )
    *_, last = await run_to(clients, agent, "limited", "error")
    assert last.value == "limited"
    assert last.status_detail is not None
    assert last.status_detail.limit is not None
    assert last.status_detail.limit.name == "max_iterations"
    assert "send a message" in last.status_detail.limit.how_to_go_on


@pytest.mark.long
async def test_slow_servers_are_loading_until_the_last_one_has_answered(clients: Clients) -> None:
    begin = clients.harness.folder / "begin"
    waiting = f"until [ -e {begin} ]; do sleep 0.1; done; exec {SERVER}"
    slow = McpServer(name="slow", command="sh", args=("-c", waiting), start_timeout=60)
    agent = clients.harness.spec(text_answer("Here."), mcp=(stdio_server(), slow))

    async def let_begin(event: ConversationStateUpdateEvent) -> None:
        if names_loading(event) == {"slow"}:
            begin.touch()

    async with clients.harness.worker():
        conversation = await clients.anna.start("Go.", agent)
        events = await statuses_until(conversation, "awaiting_user", "error", on_event=let_begin)
    order = values(events)
    assert [value for value in order if value != "idle"] == ["loading", "running", "awaiting_user"]
    loading = [names_loading(event) for event in events if event.value == "loading"]
    assert loading[0] == {"slow", "test"}
    assert loading[-1] in ({"slow"}, {"slow", "test"})
    assert {"slow"} in loading


@pytest.mark.long
async def test_a_dead_server_among_slow_ones_ends_loading_with_an_error(clients: Clients) -> None:
    slow = McpServer(name="slow", command="sleep", args=("600",), start_timeout=60)
    dead = McpServer(name="dead", command="sh", args=("-c", "sleep 1; exit 3"), start_timeout=60)
    agent = clients.harness.spec(text_answer("Never."), mcp=(slow, dead))
    events = await run_to(clients, agent, "error", "awaiting_user")
    assert [value for value in values(events) if value != "idle"] == ["loading", "error"]
    assert events[-1].status_detail is not None
    assert "'dead'" in (events[-1].status_detail.reason or "")


@pytest.mark.long
async def test_a_model_that_is_asked_again_is_told_from_the_first_failure(
    clients: Clients,
) -> None:
    failing = {"content": "At last.", "failures": [{"status": 429, "retry_after": 2}]}
    agent = clients.harness.spec(failing)
    events = await run_to(clients, agent, "awaiting_user", "error")
    retries = [e.status_detail.retry for e in events if e.status_detail and e.status_detail.retry]
    assert retries, events
    assert (retries[0].model, retries[0].kind, retries[0].attempt) == (
        agent.model.name,
        "rate_limit",
        2,
    )
    assert retries[0].next_at is not None
    assert events[-1].value == "awaiting_user"
    assert events[-1].status_detail is None
