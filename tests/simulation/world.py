"""What the simulated workers work with: a model and tools that count what they do."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from agent.completion import Completion
from agent.spec import ModelSpec, NoCondenser, Spec, StuckThresholds
from agent.steps import Task
from events.content import Message, MessageToolCall, TextContent
from events.usage import Usage
from models.model import ModelRefused, ModelUnavailable, OnText, Request
from storage.cache import EntryCache
from storage.keys import conversation_prefix, response_key
from storage.log import EventLog
from tests.simulation.scheduler import Loop
from tests.simulation.store import Access, Bucket

CACHE = 200_000
"""Bytes of entries that a process keeps: fewer than a schedule makes, at times."""

NOW = "2025-01-01T00:00:00.000000"

SPEC = Spec(
    model=ModelSpec(name="simulated"),
    condenser=NoCondenser(),
    stuck=StuckThresholds(action_observation=0, action_error=0, monologue=0, alternating=0),
)


@dataclass
class Outside:
    """What happened in the world, whatever the log says of it."""

    deeds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each action was done that must not be done twice."""
    answers: int = 0
    """What the model was paid for."""
    needless: list[str] = field(default_factory=list)
    """Answers that were asked for though a retry could have found them on record."""


class Chancy:
    """A model that answers as the dice fall, and each time in another way."""

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self.loop = loop
        self.outside = outside

    async def complete(self, request: Request, on_text: OnText) -> Completion:  # noqa: ARG002
        await asyncio.sleep(self.loop.delay())
        luck = self.loop.dice.random()
        if luck < 0.05:
            raise ModelUnavailable("overloaded", "Too much to do.")
        if luck < 0.1:
            raise ModelRefused("bad_request", "This cannot be asked.")
        self.outside.answers += 1
        return self._answer(f"answer-{self.outside.answers}")

    def _answer(self, name: str) -> Completion:
        dice = self.loop.dice
        calls = tuple(
            MessageToolCall(
                id=f"{name}.{nth}",
                name=dice.choice(("look", "charge")),
                arguments=f'{{"seconds": {round(self.loop.delay(), 3)}}}',
            )
            for nth in range(dice.choice((0, 0, 0, 1, 2, 3)))
        )
        said = Message(
            role="assistant", content=(TextContent(text=name),), tool_calls=calls or None
        )
        usage = Usage(prompt_tokens=10, completion_tokens=1, cost=1.0)
        return Completion(id=name, model="simulated", message=said, usage=usage, received=NOW)


@dataclass(frozen=True)
class World:
    """What a process has: a way to the store, what it read, a model."""

    store: Access
    model: Chancy
    outside: Outside
    loop: Loop
    kind: type[EventLog]
    entries: EntryCache = field(default_factory=lambda: EntryCache(CACHE))

    def log(self, task: Task[Any]) -> EventLog:
        return self.kind(self.store, task.user_id, task.conversation_id, self.entries)

    def on_record(self, log: EventLog, seq: int) -> bool:
        """Whether the bucket holds the answer of this step, whoever can reach it."""
        prefix = conversation_prefix(log.user_id, log.conversation_id)
        return prefix + response_key(seq) in self.store.bucket_of.objects


def world_of(bucket: Bucket, outside: Outside, patience: float, kind: type[EventLog]) -> World:
    """A fresh process's world: nothing cached, nothing known."""
    model = Chancy(bucket.loop, outside)
    return World(Access(bucket, patience), model, outside, bucket.loop, kind)
