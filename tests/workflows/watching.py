"""Looking on at a conversation: what its log says, where it stands, what it left on disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.start import Snapshot
from client.conversation import Conversation
from events.content import text_of
from events.entry import Entry
from events.messages import MessageEvent
from events.tools import ObservationEvent
from tests.house import House


async def entries(talk: Conversation) -> list[Entry]:
    return await talk.log.read(0, await talk.log.end())


async def events(talk: Conversation, *kinds: type[Any]) -> list[Any]:
    return [entry.event for entry in await entries(talk) if isinstance(entry.event, kinds)]


async def observed(talk: Conversation) -> list[str]:
    """What the tools answered, in words."""
    return [text_of(one.observation.content) for one in await events(talk, ObservationEvent)]


async def told(talk: Conversation) -> list[str]:
    """What the system told the agent."""
    said = await events(talk, MessageEvent)
    return [text_of(one.llm_message.content) for one in said if one.source == "environment"]


async def until(talk: Conversation, *statuses: str) -> Snapshot:
    async with asyncio.timeout(60):
        while (now := await talk.status()).status not in statuses:
            await asyncio.sleep(0.05)
        return now


async def growing(talk: Conversation, kind: str, text: str = "") -> None:
    """Wait until a step of this kind is at work, and has said this."""
    async with asyncio.timeout(60):
        async for steps in talk.live():
            if any(step.kind == kind and text in step.text for step in steps):
                return


async def seen(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def workspace(house: House, talk: Conversation) -> Path:
    return house.folder / "workspaces" / talk.id


def notes(house: House, talk: Conversation, name: str) -> list[str]:
    """What the tools of `tests.tools_at_hand` did, line by line."""
    path = workspace(house, talk) / name
    return path.read_text().splitlines() if path.exists() else []
