"""Using the terminal as a model does, with little patience."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest_asyncio

from events.content import text_of
from events.observations import TerminalObservation
from tests.tools.conftest import Place
from tools.shell.session import Session
from tools.shell.sessions import Sessions
from tools.shell.waiting import Patience
from tools.terminal import terminal
from tools.tool import Context

SOON = 0.3
"""Seconds in which a shell says something even on a busy machine, mostly: see `impatient`."""
LONG = 60.0
PATIENT = Patience(silence=LONG, reply=LONG)
IMPATIENT = Patience(silence=SOON, reply=SOON)


@dataclass
class Talk:
    """A conversation with a terminal; `patience` is how long it may be silent."""

    place: Place
    sessions: Sessions = field(default_factory=Sessions)
    patience: Patience = PATIENT

    async def say(
        self, command: str, *, context: Context | None = None, **arguments: Any
    ) -> TerminalObservation:
        tool = terminal(self.sessions, self.patience)
        action = tool.parse({"command": command, **arguments})
        observation = await tool.run(action, context or self.place.context)
        assert isinstance(observation, TerminalObservation)
        return observation

    async def type(self, text: str, **arguments: Any) -> TerminalObservation:
        return await self.say(text, is_input=True, **arguments)

    async def prints(self, command: str, **arguments: Any) -> str:
        """What a command prints that ends well."""
        observation = await self.say(command, **arguments)
        assert observation.exit_code == 0, said(observation)
        return printed(observation)

    def started(self, command: str, **arguments: Any) -> "asyncio.Task[TerminalObservation]":
        return asyncio.create_task(self.say(command, **arguments))

    def impatient(self) -> "Talk":
        """One who is asked soon whether to wait on: perhaps before anything was printed."""
        return replace(self, patience=IMPATIENT)

    def with_patience(self, silence: float, reply: float) -> "Talk":
        return replace(self, patience=Patience(silence, reply))

    async def hears(self, command: str, words: str) -> TerminalObservation:
        """What was said when the command, which still runs, had printed just these words."""
        asked = await self.impatient().say(command)
        while not printed(asked):
            asked = await self.impatient().type("")
        assert printed(asked) == words
        return asked

    async def session(self) -> Session:
        """The session of the conversation, which must be there."""
        async with self.sessions.seat(self.place.context.conversation_id) as seat:
            assert seat.session is not None
            return seat.session


@pytest_asyncio.fixture
async def talk(place: Place, token: str) -> AsyncIterator[Talk]:  # noqa: ARG001 - ends after us
    """Its shells end with the test, and then nobody has the test's token any more."""
    talk = Talk(place)
    yield talk
    await talk.sessions.close()


def said(observation: TerminalObservation) -> str:
    return text_of(observation.content)


def printed(observation: TerminalObservation) -> str:
    """What the command printed, without what we say of it."""
    return re.sub(r"(?m)^\[[A-Z][^\]]*\]\n?", "", said(observation))


async def cancelled(task: "asyncio.Task[TerminalObservation]") -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
