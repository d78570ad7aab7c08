"""The benchmark's stateful back-ends as tools: one set of instances for each conversation.

The state lives in the worker's memory, and the log is what it is made of: before a call, the
instances have had exactly the earlier calls that the log holds a result of. Where they have not
(another worker, a call that was run and never recorded), new ones are made and replay the log. So
a call may be run any number of times and is applied once, which makes the tools idempotent.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from examples.bfcl import upstream
from examples.bfcl.dataset import Sample, class_of, definitions, samples
from perdure.events.actions import MCPToolAction
from perdure.events.content import TextContent, ToolDefinition, join_text
from perdure.events.entry import Entry
from perdure.events.messages import SystemPromptEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.storage.log.reader import LogReader
from perdure.tools.tool import Context, Tool

SCENARIO = "Scenario: "
"""Starts the line of the system prompt that names the sample."""

MAX_CONVERSATIONS = 256
"""Conversations whose back-ends a worker keeps; the one unused for longest is made anew."""


class ReplayError(RuntimeError):
    """The log cannot give the back-ends their state back; `str(error)` says why."""


class History:
    """The calls of one conversation, read from its log as far as it goes."""

    def __init__(self) -> None:
        self.sample: Sample | None = None
        self.actions: dict[int, ActionEvent] = {}
        self.results: dict[str, str] = {}
        self._next = 0

    async def read_on(self, log: LogReader, seq: int) -> None:
        """Take in what is new: all up to `seq`, which must be there, and what is behind it.

        The results of the other calls of an answer stand behind all of its calls.
        """
        for entry in await log.read(self._next, max(0, seq + 1 - self._next)):
            self._take(entry)
        while (later := await log.find(self._next)) is not None:
            self._take(later)

    def _take(self, entry: Entry) -> None:
        self._next = entry.seq + 1
        match entry.event:
            case SystemPromptEvent() as prompt:
                self.sample = find_sample(prompt.system_prompt.text)
            case ActionEvent() as action:
                self.actions[entry.seq] = action
            case ObservationEvent() as answer if not answer.observation.is_error:
                self.results[answer.action_id] = join_text(answer.observation.content)

    def before(self, seq: int) -> list[ActionEvent]:
        """The calls before `seq` that have a result, in order."""
        calls = (self.actions[at] for at in sorted(self.actions) if at < seq)
        return [call for call in calls if call.id in self.results]


class Backends:
    """The instances of one conversation, and the ids of the actions they have had."""

    def __init__(self, sample: Sample) -> None:
        self.instances = {name: upstream.backend(sample.entry, name) for name in sample.classes}
        self.applied: list[str] = []

    def apply(self, tool: str, action_id: str, arguments: dict[str, Any]) -> str:
        """Make the call; what it returns or raises, in upstream's words."""
        self.applied.append(action_id)
        try:
            method = getattr(self.instances[str(class_of(tool))], tool)
            return _text(method(**arguments))
        # Whatever a back-end raises is the result of the call, as upstream has it.
        except Exception as error:
            return f"Error during execution: {error}"


def _text(result: object) -> str:
    if isinstance(result, str):
        return result
    if not isinstance(result, dict):
        return str(result)
    try:
        return json.dumps(result)
    except (TypeError, ValueError):
        return str(result)


class Conversation:
    """A conversation as this worker knows it; its calls are made one at a time."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.history = History()
        self.backends: Backends | None = None

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> str:
        async with self.lock:
            await self.history.read_on(context.log, context.seq)
            backends = self._ready(context)
            return backends.apply(tool, context.action_id, arguments)

    def _ready(self, context: Context) -> Backends:
        """Back-ends that have had the calls before this one, and no other."""
        earlier = self.history.before(context.seq)
        if self.backends is None or self.backends.applied != [call.id for call in earlier]:
            self.backends = _replayed(self.history, earlier, context.conversation_id)
        return self.backends


def _replayed(history: History, calls: list[ActionEvent], conversation_id: str) -> Backends:
    """New back-ends that have had these calls.

    Raises ReplayError where the log names no sample, or a call gives another result now.
    """
    if history.sample is None:
        raise ReplayError(
            f"The system prompt of conversation {conversation_id} has no line "
            f"'{SCENARIO}ID' with the id of a sample of {upstream.CATEGORY}: add it."
        )
    backends = Backends(history.sample)
    for call in calls:
        again = backends.apply(call.tool_name, call.id, _arguments(call))
        if again != history.results[call.id]:
            raise ReplayError(
                f"Call {call.tool_call_id} ({call.tool_name}) of conversation {conversation_id} "
                f"returned {history.results[call.id]!r} and returns {again!r} when replayed: "
                "run it with the version of bfcl-eval it was started with."
            )
    return backends


def _arguments(call: ActionEvent) -> dict[str, Any]:
    assert isinstance(call.action, MCPToolAction), "an action with a result was validated"
    return call.action.data


def find_sample(prompt: str) -> Sample | None:
    """The sample that a system prompt names."""
    for line in prompt.splitlines():
        if line.startswith(SCENARIO):
            return samples().get(line.removeprefix(SCENARIO).strip())
    return None


class Worker:
    """The conversations that one process knows; bounded, as each can be had from its log."""

    def __init__(self, most: int = MAX_CONVERSATIONS) -> None:
        self.most = most
        self._live: OrderedDict[str, Conversation] = OrderedDict()

    def conversation(self, conversation_id: str) -> Conversation:
        conversation = self._live.pop(conversation_id, None) or Conversation()
        self._live[conversation_id] = conversation
        if len(self._live) > self.most:
            self._live.popitem(last=False)
        return conversation


def toolset(class_name: str, worker: Worker) -> tuple[Tool, ...]:
    """The methods of a back-end as tools."""
    return tuple(
        Tool(definition, _parse, _runner(definition, worker))
        for definition in definitions(class_name)
    )


def _parse(arguments: dict[str, Any]) -> MCPToolAction:
    # Arguments that do not fit are told to the model by the back-end, as upstream does.
    return MCPToolAction(data=arguments)


def _runner(
    definition: ToolDefinition, worker: Worker
) -> Callable[[MCPToolAction, Context], Awaitable[MCPToolObservation]]:
    async def run(action: MCPToolAction, context: Context) -> MCPToolObservation:
        known = worker.conversation(context.conversation_id)
        text = await known.call(definition.name, action.data, context)
        return MCPToolObservation(content=(TextContent(text=text),), tool_name=definition.name)

    return run


_HERE = Worker()

GorillaFileSystem = toolset("GorillaFileSystem", _HERE)
MathAPI = toolset("MathAPI", _HERE)
MessageAPI = toolset("MessageAPI", _HERE)
TicketAPI = toolset("TicketAPI", _HERE)
TradingBot = toolset("TradingBot", _HERE)
TravelAPI = toolset("TravelAPI", _HERE)
TwitterAPI = toolset("TwitterAPI", _HERE)
VehicleControlAPI = toolset("VehicleControlAPI", _HERE)
