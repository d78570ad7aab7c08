"""Conversations in every state that a lost Temporal leaves behind, and what becomes of them."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from activities.delegate import child_id
from agent.spec import Confirmation, Spec
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict
from events.content import text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from storage.log import answered
from tests.house import House, calls, says
from tests.workers import WorkerProcess
from tests.workflows.watching import entries, events, growing, notes, seen, until, workspace

CHARGE = calls(("charge", {"amount": 5, "seconds": 600}))


@dataclass(frozen=True)
class LeftBehind:
    """By what each was doing; `child` was delegated to by `parent`."""

    thinking: Conversation
    charging: Conversation
    asking: Conversation
    paused: Conversation
    finished: Conversation
    closed: Conversation
    parent: Conversation
    child: Conversation

    def all(self) -> list[Conversation]:
        return [getattr(self, one.name) for one in fields(self)]

    def in_the_hands_of(self, client: Client) -> "LeftBehind":
        """The same conversations, reached by another client."""
        return LeftBehind(*(client.conversation(one.id) for one in self.all()))

    async def logs(self) -> list[list[Entry]]:
        return [await entries(one) for one in self.all()]


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


async def left_behind(house: House) -> LeftBehind:
    """They stand still in the middle of what they do; a worker must be running."""
    charging = await house.client.start("charge", house.spec(CHARGE, says("checked")))
    thinking = await house.client.start("think", house.spec({"content": "later", "delay": 600}))
    parent = await house.client.start(
        "have it charged",
        house.spec(
            calls(("delegate", {"task": "charge"})),
            CHARGE,
            tools=("delegate", "tests.tools_at_hand:TOOLS"),
        ),
    )
    asking, paused = await _asking(house), await _paused(house)
    finished, closed = await _finished(house), await _finished(house)
    await closed.close()
    await closed.handle.result()
    await until(finished, "finished")
    for one in (charging, parent):
        await seen(lambda one=one: bool(notes(house, one, "charged")))  # type: ignore[misc]
    await growing(thinking, "llm.chat")
    [action] = (await parent.state()).pending
    child = house.client.conversation(child_id(parent.id, action.seq))
    return LeftBehind(thinking, charging, asking, paused, finished, closed, parent, child)


async def _asking(house: House) -> Conversation:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})),
        says("charged"),
        confirmation=Confirmation(policy="always"),
    )
    talk = await house.client.start("charge", spec)
    await until(talk, "waiting_for_confirmation")
    return talk


async def _paused(house: House) -> Conversation:
    spec = house.spec(calls(("meet", {"name": "a", "other": "b"})), says("met"))
    talk = await house.client.start("meet", spec)
    await seen((workspace(house, talk) / "a").exists)
    await talk.pause()
    (workspace(house, talk) / "b").touch()
    await until(talk, "paused")
    return talk


async def _finished(house: House) -> Conversation:
    talk = await house.client.start("hi", house.spec(says("hello"), says("hello again")))
    await talk.finished()
    return talk


async def let_go_on(there: LeftBehind) -> None:
    """The script that a conversation goes on by: nothing takes its time any more."""
    rewrite((await there.thinking.state()).spec, says("thought"))
    rewrite((await there.parent.state()).spec, says("unused"), says("told"), says("uncertain"))


def rewrite(spec: Spec | None, *answers: dict[str, Any]) -> None:
    """Have the model of the spec give these answers from now on."""
    assert spec is not None
    Path(spec.model.name.removeprefix("scripted:")).write_text(json.dumps({"answers": answers}))


async def go_on(house: House, there: LeftBehind, before: list[list[Entry]]) -> None:
    """Each goes on where its log ends; nothing of it is lost, and nothing done or said twice."""
    [call] = (await until(there.asking, "waiting_for_confirmation")).pending
    await there.asking.respond(accept=True, calls=[call.tool_call_id])
    await there.paused.resume()
    await there.finished.send("and now?", message_id="later")
    with pytest.raises(Conflict, match="is closed"):
        await there.closed.send("and now?")
    for one in (there.thinking, there.charging, there.parent, there.asking, there.paused):
        assert (await until(one, "finished")).turn == 1
    assert (await there.finished.finished("later")).turn == 2
    assert (await there.child.state()).status == "finished"
    assert await _said(there.thinking) == ["thought"]
    assert await _said(there.paused) == ["met"]
    assert await _said(there.parent) == ["told"]
    for one in (there.charging, there.child):
        await _is_uncertain(one)
    await _is_told(there)
    for one in (there.charging, there.asking, there.parent):
        assert notes(house, one, "charged") == ["5"]
    for old, new in zip(before, await there.logs(), strict=True):
        whole(old, new)


async def _said(talk: Conversation) -> list[str]:
    messages = await events(talk, MessageEvent)
    return [text_of(one.llm_message.content) for one in messages if one.source == "agent"]


async def _is_uncertain(talk: Conversation) -> None:
    """Nobody knows what came of its call, and the agent has been told so."""
    *_, error = await events(talk, AgentErrorEvent)
    assert error.classification == "outcome_unknown"
    assert '"amount": 5' in error.error


async def _is_told(there: LeftBehind) -> None:
    """The parent has the report of the child that went on."""
    [reported] = await events(there.parent, ObservationEvent)
    text = text_of(reported.observation.content)
    assert text.startswith(f"Conversation {there.child.id}: finished")
    assert text.endswith("uncertain")
    assert (
        len([one for one in await events(there.child, MessageEvent) if one.source == "user"]) == 1
    )


def whole(old: list[Entry], new: list[Entry]) -> None:
    """The new log is the old one and more; it has no gap, and one answer for each action."""
    assert new[: len(old)] == old
    assert [one.seq for one in new] == list(range(len(new)))
    answers = [action for one in new if (action := answered(one.event)) is not None]
    assert len(answers) == len(set(answers))
    actions = [one.event for one in new if isinstance(one.event, ActionEvent)]
    assert set(answers) == {one.id for one in actions if one.action is not None}


def is_fenced(worker: WorkerProcess, talk: Conversation) -> bool:
    """Whether the worker has tried to write into the log, and was refused."""
    lines = worker.log.read_text().splitlines()
    return any(f"{talk.id}/events/" in one and "is held by" in one for one in lines)
