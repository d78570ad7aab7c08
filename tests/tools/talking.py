"""A driver that calls the terminal tool as a model does, with adjustable timeouts."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest_asyncio

from perdure.events.content import join_text
from perdure.events.observations import TerminalObservation
from perdure.storage.log.event_log import EventLog
from perdure.tools.shell.session import ShellSession
from perdure.tools.shell.sessions import ShellSessions
from perdure.tools.shell.waiting import SilenceTimeouts
from perdure.tools.terminal import terminal_tool
from perdure.tools.tool import Context
from tests.tools.conftest import ToolBench

SHORT = 0.3
"""Seconds in which a shell says something even on a busy machine, mostly: see `impatient`."""
LONG = 60.0
LONG_TIMEOUTS = SilenceTimeouts(silence=LONG, reply=LONG)
SHORT_TIMEOUTS = SilenceTimeouts(silence=SHORT, reply=SHORT)


@dataclass
class Terminal:
    """A conversation with a terminal; `patience` is how long it may be silent."""

    place: ToolBench
    sessions: ShellSessions = field(default_factory=ShellSessions)
    timeouts: SilenceTimeouts = LONG_TIMEOUTS

    async def run(
        self, command: str, *, context: Context | None = None, **arguments: Any
    ) -> TerminalObservation:
        tool = terminal_tool(self.sessions, self.timeouts)
        action = tool.parse({"command": command, **arguments})
        observation = await tool.run(action, context or self.place.context)
        assert isinstance(observation, TerminalObservation)
        return observation

    async def type(self, text: str, **arguments: Any) -> TerminalObservation:
        return await self.run(text, is_input=True, **arguments)

    async def run_ok(self, command: str, **arguments: Any) -> str:
        """Run a command that ends well, and return its output."""
        observation = await self.run(command, **arguments)
        assert observation.exit_code == 0, text_of_result(observation)
        return output_of(observation)

    def start(self, command: str, **arguments: Any) -> "asyncio.Task[TerminalObservation]":
        return asyncio.create_task(self.run(command, **arguments))

    def with_short_timeouts(self) -> "Terminal":
        """Start a terminal that soon reports a running command, perhaps before any output."""
        return replace(self, timeouts=SHORT_TIMEOUTS)

    def with_timeouts(self, silence: float, reply: float) -> "Terminal":
        return replace(self, timeouts=SilenceTimeouts(silence, reply))

    async def run_until_output(self, command: str, words: str) -> TerminalObservation:
        """Run a command until it has printed just these words; return the report on it."""
        observation = await self.with_short_timeouts().run(command)
        while not output_of(observation):
            observation = await self.with_short_timeouts().type("")
        assert output_of(observation) == words
        return observation

    async def session(self) -> ShellSession:
        """The session of the conversation, which must be there."""
        async with self.sessions.slot(self.place.context.log.prefix) as seat:
            assert seat.session is not None
            return seat.session


def in_conversation(context: Context, name: str) -> Context:
    """Return the same context in another conversation."""
    conversation_id = str(uuid5(NAMESPACE_URL, name))
    log = EventLog(context.log.store, context.log.user_id, conversation_id)
    return replace(context, conversation_id=conversation_id, log=log)


@pytest_asyncio.fixture
async def talk(place: ToolBench, token: str) -> AsyncIterator[Terminal]:  # noqa: ARG001 - ends after us
    """Start a terminal whose shells end with the test."""
    talk = Terminal(place)
    yield talk
    await talk.sessions.close()


def text_of_result(observation: TerminalObservation) -> str:
    return join_text(observation.content)


def output_of(observation: TerminalObservation) -> str:
    """Return the output of the command, without our notes on it."""
    return re.sub(r"(?m)^\[[A-Z][^\]]*\]\n?", "", text_of_result(observation))


async def cancel(task: "asyncio.Task[TerminalObservation]") -> None:
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
