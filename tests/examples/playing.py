"""A conversation of the benchmark on files: the same events, without Temporal and a model."""

from pathlib import Path
from uuid import uuid4

from examples.bfcl.backends import SCENARIO, Worker, toolset
from examples.bfcl.dataset import Sample
from examples.bfcl.objects import Objects, fetch_objects
from examples.bfcl.script import script
from perdure.agent.calls.answer import parse_response
from perdure.agent.calls.completion import Completion
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.entry import Entry, Origin
from perdure.events.event import Event
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.storage.keys import conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from perdure.testing.script import ScriptedAnswer
from perdure.tools.tool import Context, Tool

WHEN = "2026-01-01T00:00:00.000000"
USER = "tester"


class BenchmarkConversation:
    """A sample, played by `worker`, which can be another one for each call."""

    def __init__(self, store: Store, sample: Sample, worker: Worker) -> None:
        self.store = store
        self.sample = sample
        self.worker = worker
        self.id = str(uuid4())
        self.log = EventLog(store, USER, self.id)
        self.seq = 0
        self.results: list[str] = []
        self._answers = iter(script(sample).answers)

    async def play_all(self) -> "BenchmarkConversation":
        """Play all turns and give itself back."""
        await self.open()
        for turn, text in enumerate(self.sample.turns):
            await self.send_message(text, f"{self.sample.id}-{turn}")
            await self.respond()
        return self

    async def open(self) -> None:
        prompt = TextContent(text=f"{SCENARIO}{self.sample.id}")
        await self._append(SystemPromptEvent(timestamp=WHEN, system_prompt=prompt))

    async def send_message(self, text: str, message_id: str) -> None:
        message = Message(role="user", content=(TextContent(text=text),))
        await self._append(
            MessageEvent(timestamp=WHEN, source="user", llm_message=message, message_id=message_id)
        )

    async def respond(self) -> None:
        """The model's answers of one turn and what comes of them."""
        for answer in self._answers:
            made = await self._append(*parse_response(_completion(answer, self.seq), self.tools()))
            for entry in made:
                if isinstance(entry.event, ActionEvent):
                    await self.act(entry)
            if not answer.tool_calls:
                return

    async def act(self, entry: Entry) -> None:
        """Make the call and record what came of it."""
        action = entry.event
        assert isinstance(action, ActionEvent)
        observation = await self.call(entry)
        self.results.append(_text(observation))
        await self._append(
            ObservationEvent(
                timestamp=WHEN,
                action_id=action.id,
                tool_name=action.tool_name,
                tool_call_id=action.tool_call_id,
                observation=observation,
            )
        )

    async def call(self, entry: Entry) -> MCPToolObservation:
        """Make the call, and keep what comes of it to oneself."""
        action = entry.event
        assert isinstance(action, ActionEvent)
        context = Context(
            conversation_id=self.id,
            action_id=action.id,
            seq=entry.seq,
            workspace=Path(),
            log=self.log,
            progress=lambda _: None,
            keep=self.log.store_blob,
        )
        observation = await self.tools()[action.tool_name].run(action.action, context)
        assert isinstance(observation, MCPToolObservation)
        return observation

    def tools(self) -> dict[str, Tool]:
        sets = (toolset(name, self.worker) for name in self.sample.classes)
        return {tool.name: tool for tools in sets for tool in tools}

    async def objects(self) -> Objects:
        return await fetch_objects(self.store, conversation_prefix(USER, self.id))

    async def _append(self, *events: Event) -> list[Entry]:
        origin = Origin(run="run", activity=str(self.seq))
        entries = await self.log.append(list(events), base=self.seq, origin=origin)
        self.seq += len(entries)
        return entries


def _text(observation: MCPToolObservation) -> str:
    (part,) = observation.content
    assert isinstance(part, TextContent)
    return part.text


def _completion(answer: ScriptedAnswer, number: int) -> Completion:
    calls = tuple(
        MessageToolCall(id=f"call-{number}-{nth}", name=call.name, arguments=call.arguments_text)
        for nth, call in enumerate(answer.tool_calls)
    )
    content = (TextContent(text=answer.content),) if answer.content else ()
    message = Message(role="assistant", content=content, tool_calls=calls or None)
    return Completion(id=f"response-{number}", model="script", message=message, received=WHEN)
