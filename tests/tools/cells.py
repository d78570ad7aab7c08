"""A driver that runs cells as a model does, and a log of cells that were run elsewhere."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest_asyncio

from perdure.events.actions import IPythonRunCellAction
from perdure.events.content import ImageContent, MessageToolCall, join_text
from perdure.events.entry import Origin
from perdure.events.event import Event
from perdure.events.observations import IPythonRunCellObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, ToolErrorKind
from perdure.tools.ipython import ipython_tool
from perdure.tools.shell.sessions import ShellSessions
from perdure.tools.tool import Context
from tests.tools.conftest import ToolBench
from tests.tools.recording import log_as_another_worker_reads_it

TIMESTAMP = "2026-03-01T09:00:00.000000"
CALL: dict[str, Any] = {"tool_name": "ipython", "tool_call_id": "call"}


@dataclass
class Notebook:
    """A conversation with a kernel."""

    place: ToolBench
    sessions: ShellSessions = field(default_factory=ShellSessions)

    async def run(
        self, code: str = "", *, context: Context | None = None, **arguments: Any
    ) -> IPythonRunCellObservation:
        tool = ipython_tool(self.sessions)
        action = tool.parse({"code": code, **arguments})
        observation = await tool.run(action, context or self.place.context)
        assert isinstance(observation, IPythonRunCellObservation)
        return observation

    async def text(self, code: str = "", **arguments: Any) -> str:
        return text_of(await self.run(code, **arguments))

    async def record(
        self, code: str, result: IPythonRunCellObservation | ToolErrorKind, reset: bool = False
    ) -> None:
        """Write a call and its result to the log, as another worker does."""
        action = await self._append(
            ActionEvent(
                timestamp=TIMESTAMP,
                action=IPythonRunCellAction(code=code, reset=reset),
                **CALL,
                tool_call=MessageToolCall(id="call", name="ipython", arguments="{}"),
                llm_response_id="response",
            )
        )
        if isinstance(result, str):
            error: dict[str, Any] = {"error": "So it is.", "classification": result}
            await self._append(
                AgentErrorEvent(timestamp=TIMESTAMP, action_id=action, **CALL, **error)
            )
        else:
            fields: dict[str, Any] = {"action_id": action, "observation": result}
            await self._append(ObservationEvent(timestamp=TIMESTAMP, **CALL, **fields))

    async def _append(self, event: Event) -> str:
        """Append the event, and return its id."""
        log = log_as_another_worker_reads_it(self.place)
        seq = await log.end()
        [entry] = await log.append([event], base=seq, origin=Origin(run="run", activity=str(seq)))
        return entry.event.id

    async def context(self, **changes: Any) -> Context:
        """The context of a call behind what is recorded."""
        end = await log_as_another_worker_reads_it(self.place).end()
        return replace(self.place.context, seq=end, **changes)


def result(count: int, **fields: Any) -> IPythonRunCellObservation:
    return IPythonRunCellObservation(execution_count=count, **fields)


def text_of(observation: IPythonRunCellObservation) -> str:
    return join_text(observation.content)


def images_of(observation: IPythonRunCellObservation) -> list[str]:
    images = [part for part in observation.content if isinstance(part, ImageContent)]
    return [url for image in images for url in image.image_urls]


@pytest_asyncio.fixture
async def notebook(place: ToolBench, token: str) -> AsyncIterator[Notebook]:  # noqa: ARG001 - ends after us
    """A notebook whose kernels end with the test."""
    notebook = Notebook(place)
    yield notebook
    await notebook.sessions.close()
