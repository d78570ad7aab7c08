"""Conversations interrupted in every state by the loss of Temporal, and their recovery."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from perdure.activities.delegate import child_id
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import Conflict
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import answered_action_id
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import WorkerProcess
from tests.workflows.watching import (
    entries,
    events,
    notes,
    wait_for_growth,
    wait_for_status,
    wait_until,
    workspace,
)

CHARGE = tool_call_answer(("charge", {"amount": 5, "seconds": 600}))


@dataclass(frozen=True)
class InterruptedConversations:
    """The conversations by what each was doing; `parent` delegated to `child`."""

    thinking: Conversation
    charging: Conversation
    asking: Conversation
    paused: Conversation
    finished: Conversation
    closed: Conversation
    parent: Conversation
    child: Conversation

    def all(self) -> list[Conversation]:
        return [getattr(self, field.name) for field in fields(self)]

    def through_client(self, client: Client) -> "InterruptedConversations":
        """Return the handles of the same conversations from another client."""
        return InterruptedConversations(*(client.conversation(item.id) for item in self.all()))

    async def logs(self) -> list[list[Entry]]:
        return [await entries(item) for item in self.all()]


OUTCOMES = {
    "thinking": "reopened",
    "charging": "reopened",
    "asking": "reopened",
    "paused": "reopened",
    "finished": "at_rest",
    "closed": "closed",
    "parent": "reopened",
    "child": "delegated",
}


async def start_interrupted(harness: ConversationHarness) -> InterruptedConversations:
    """Start conversations that block in the middle of a step; a worker must be running."""
    charging = await harness.client.start("charge", harness.spec(CHARGE, text_answer("checked")))
    thinking = await harness.client.start("think", harness.spec({"content": "later", "delay": 600}))
    parent = await harness.client.start(
        "have it charged",
        harness.spec(
            tool_call_answer(("delegate", {"task": "charge"})),
            CHARGE,
            tools=("delegate", "tests.example_tools:TOOLS"),
        ),
    )
    asking, paused = await _start_confirming(harness), await _start_paused(harness)
    finished, closed = await _start_finished(harness), await _start_finished(harness)
    await closed.close()
    await closed.handle.result()
    await wait_for_status(finished, "finished")
    for item in (charging, parent):
        await wait_until(lambda item=item: bool(notes(harness, item, "charged")))  # type: ignore[misc]
    await wait_for_growth(thinking, "llm.chat")
    [action] = (await parent.state()).pending
    child = harness.client.conversation(child_id(parent.id, action.seq))
    return InterruptedConversations(
        thinking, charging, asking, paused, finished, closed, parent, child
    )


async def _start_confirming(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("charged"),
        confirmation=Confirmation(policy="always"),
    )
    talk = await harness.client.start("charge", spec)
    await wait_for_status(talk, "waiting_for_confirmation")
    return talk


async def _start_paused(harness: ConversationHarness) -> Conversation:
    spec = harness.spec(tool_call_answer(("meet", {"name": "a", "other": "b"})), text_answer("met"))
    talk = await harness.client.start("meet", spec)
    await wait_until((workspace(harness, talk) / "a").exists)
    await talk.pause()
    (workspace(harness, talk) / "b").touch()
    await wait_for_status(talk, "paused")
    return talk


async def _start_finished(harness: ConversationHarness) -> Conversation:
    talk = await harness.client.start(
        "hi", harness.spec(text_answer("hello"), text_answer("hello again"))
    )
    await talk.wait_for_turn()
    return talk


async def rewrite_scripts(conversations: InterruptedConversations) -> None:
    """Replace the scripts of the blocked models by ones without delays."""
    rewrite_script((await conversations.thinking.state()).spec, text_answer("thought"))
    rewrite_script(
        (await conversations.parent.state()).spec,
        text_answer("unused"),
        text_answer("told"),
        text_answer("uncertain"),
    )


def rewrite_script(spec: Agent | None, *answers: dict[str, Any]) -> None:
    """Replace the answers of the spec's model."""
    assert spec is not None
    Path(spec.model.name.removeprefix("scripted:")).write_text(json.dumps({"answers": answers}))


async def resume_all(
    harness: ConversationHarness, conversations: InterruptedConversations, before: list[list[Entry]]
) -> None:
    """Resume each conversation where its log ends, and check that nothing is lost or repeated."""
    [call] = (await wait_for_status(conversations.asking, "waiting_for_confirmation")).pending
    await conversations.asking.respond(accept=True, calls=[call.tool_call_id])
    await conversations.paused.resume()
    await conversations.finished.send("and now?", message_id="later")
    with pytest.raises(Conflict, match="is closed"):
        await conversations.closed.send("and now?")
    for item in (
        conversations.thinking,
        conversations.charging,
        conversations.parent,
        conversations.asking,
        conversations.paused,
    ):
        assert (await wait_for_status(item, "finished")).turn == 1
    assert (await conversations.finished.wait_for_turn("later")).turn == 2
    assert (await conversations.child.state()).status == "finished"
    assert await _agent_texts(conversations.thinking) == ["thought"]
    assert await _agent_texts(conversations.paused) == ["met"]
    assert await _agent_texts(conversations.parent) == ["told"]
    for item in (conversations.charging, conversations.child):
        await _assert_outcome_unknown(item)
    await _assert_report_delivered(conversations)
    for item in (conversations.charging, conversations.asking, conversations.parent):
        assert notes(harness, item, "charged") == ["5"]
    for old, new in zip(before, await conversations.logs(), strict=True):
        assert_log_extended(old, new)


async def _agent_texts(talk: Conversation) -> list[str]:
    messages = await events(talk, MessageEvent)
    return [
        join_text(message.llm_message.content) for message in messages if message.source == "agent"
    ]


async def _assert_outcome_unknown(talk: Conversation) -> None:
    """Check that the agent was told that the outcome of its call is unknown."""
    *_, error = await events(talk, AgentErrorEvent)
    assert error.classification == "outcome_unknown"
    assert '"amount": 5' in error.error


async def _assert_report_delivered(conversations: InterruptedConversations) -> None:
    """Check that the parent has the report of its child."""
    [reported] = await events(conversations.parent, ObservationEvent)
    text = join_text(reported.observation.content)
    assert text.startswith(f"Conversation {conversations.child.id}: finished")
    assert text.endswith("uncertain")
    assert (
        len(
            [
                event
                for event in await events(conversations.child, MessageEvent)
                if event.source == "user"
            ]
        )
        == 1
    )


def assert_log_extended(old: list[Entry], new: list[Entry]) -> None:
    """Check that the new log extends the old one without gaps, with one answer for each action."""
    assert new[: len(old)] == old
    assert [item.seq for item in new] == list(range(len(new)))
    answers = [action for item in new if (action := answered_action_id(item.event)) is not None]
    assert len(answers) == len(set(answers))
    actions = [item.event for item in new if isinstance(item.event, ActionEvent)]
    assert set(answers) == {item.id for item in actions if item.action is not None}


def is_fenced(worker: WorkerProcess, talk: Conversation) -> bool:
    """Tell whether a write of the worker into the log was refused."""
    lines = worker.log.read_text().splitlines()
    return any(f"{talk.id}/events/" in line and "is held by" in line for line in lines)
