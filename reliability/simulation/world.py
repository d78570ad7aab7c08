"""The resources of simulated workers: a model and tools that count their effects."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.calls.completion import Completion
from perdure.agent.loop.steps import Task
from perdure.agent.policies import StuckThresholds
from perdure.agent.spec import Agent, ModelSpec, NoCondenser
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.usage import Usage
from perdure.models.model import ModelRefused, ModelUnavailable, OnText, Request
from perdure.storage.keys import conversation_prefix, event_key, response_key
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from reliability.simulation.bucket import Bucket
from reliability.simulation.scheduler import SimulatedLoop
from reliability.simulation.store import Access

CACHE_BYTES = 200_000
"""Bytes of entries that a process keeps: fewer than a schedule makes, at times."""

WAITS: dict[str, dict[str, Any]] = {"wait": {"signal": "go"}, "ask": {"question": "Go?"}}
"""The arguments of the tools that wait."""

NOW = "2025-01-01T00:00:00.000000"

SPEC = Agent(
    model=ModelSpec(name="simulated"),
    condenser=NoCondenser(),
    stuck=StuckThresholds(action_observation=0, action_error=0, monologue=0, alternating=0),
)


@dataclass
class Effects:
    """The effects of tools in the world, whatever the log says of them."""

    actions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each action was done that must not be done twice."""
    answers: int = 0
    """What the model was paid for."""
    needless: list[str] = field(default_factory=list)
    """Answers that were asked for though a retry could have found them on record."""


class RandomModel:
    """A model that answers as the dice fall, and each time in another way."""

    def __init__(self, loop: SimulatedLoop, outside: Effects) -> None:
        self.loop = loop
        self.outside = outside

    async def complete(self, request: Request, on_text: OnText) -> Completion:  # noqa: ARG002
        await asyncio.sleep(self.loop.delay())
        luck = self.loop.random.random()
        if luck < 0.05:
            raise ModelUnavailable("overloaded", "Too much to do.")
        if luck < 0.1:
            raise ModelRefused("bad_request", "This cannot be asked.")
        self.outside.answers += 1
        return self._answer(f"answer-{self.outside.answers}")

    def _answer(self, name: str) -> Completion:
        dice = self.loop.random
        calls = tuple(self._call(f"{name}.{nth}") for nth in range(dice.choice((0, 0, 0, 1, 2, 3))))
        message = Message(
            role="assistant", content=(TextContent(text=name),), tool_calls=calls or None
        )
        usage = Usage(prompt_tokens=10, completion_tokens=1, cost=1.0, model="simulated")
        return Completion(id=name, model="simulated", message=message, usage=usage, received=NOW)

    def _call(self, call_id: str) -> MessageToolCall:
        """A call of a tool that takes a while, or of one that waits: for a signal, or an answer."""
        dice = self.loop.random
        name = dice.choice(("look", "charge", "look", "charge", *WAITS))
        arguments = WAITS.get(name) or {"seconds": round(self.loop.delay(), 3)}
        return MessageToolCall(id=call_id, name=name, arguments=json.dumps(arguments))


@dataclass(frozen=True)
class WorkerResources:
    """The resources of a process: a way to the store, a cache, a model."""

    store: Access
    model: RandomModel
    outside: Effects
    loop: SimulatedLoop
    kind: type[EventLog]
    entries: EntryCache = field(default_factory=lambda: EntryCache(CACHE_BYTES))

    def log(self, task: Task[Any]) -> EventLog:
        return self.kind(self.store, task.user_id, task.conversation_id, self.entries)

    def on_record(self, log: EventLog, seq: int) -> bool:
        """Tell whether the bucket holds the answer of this step, whoever can reach it."""
        prefix = conversation_prefix(log.user_id, log.conversation_id)
        names = (response_key(seq), event_key(log.conversation_id, seq))
        return any(prefix + name in self.store.bucket_of.objects for name in names)


def make_resources(
    bucket: Bucket, outside: Effects, patience: float, kind: type[EventLog]
) -> WorkerResources:
    """A fresh process's world: nothing cached, nothing known."""
    model = RandomModel(bucket.loop, outside)
    return WorkerResources(Access(bucket, patience), model, outside, bucket.loop, kind)
