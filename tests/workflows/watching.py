"""Watching a conversation: its log, its status and its files."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perdure.agent.loop.start import ConversationStatus
from perdure.client.conversation import Conversation
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.temporal.names import workspace_folder
from tests.harness import ConversationHarness


async def entries(talk: Conversation) -> list[Entry]:
    return await talk.log.read(0, await talk.log.end())


async def events(talk: Conversation, *kinds: type[Any]) -> list[Any]:
    return [entry.event for entry in await entries(talk) if isinstance(entry.event, kinds)]


async def observations(talk: Conversation) -> list[str]:
    """Return the texts of all observations."""
    return [join_text(event.observation.content) for event in await events(talk, ObservationEvent)]


async def agent_texts(talk: Conversation) -> list[str]:
    """Return the messages of the system to the agent."""
    messages = await events(talk, MessageEvent)
    return [
        join_text(item.llm_message.content) for item in messages if item.source == "environment"
    ]


async def wait_for_status(talk: Conversation, *statuses: str) -> ConversationStatus:
    async with asyncio.timeout(60):
        while (now := await talk.status()).status not in statuses:
            await asyncio.sleep(0.05)
        return now


async def wait_for_growth(talk: Conversation, kind: str, text: str = "") -> None:
    """Wait until a step of this kind runs and has shown this text."""
    async with asyncio.timeout(60):
        async for steps in talk.watch_running_steps():
            if any(step.kind == kind and text in step.text for step in steps):
                return


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def workspace(harness: ConversationHarness, talk: Conversation) -> Path:
    return harness.folder / "workspaces" / workspace_folder(talk.log.user_id, talk.id)


def notes(harness: ConversationHarness, talk: Conversation, name: str) -> list[str]:
    """Return the lines that the tools of `tests.example_tools` wrote."""
    path = workspace(harness, talk) / name
    return path.read_text().splitlines() if path.exists() else []
