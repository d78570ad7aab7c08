"""The load: conversations that are begun as others end, with calls of tools that take seconds."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.storage.log.state import read_state
from perdure.testing.script import Script, ScriptedAnswer, ScriptedToolCall

VARIANTS = 12
ROUNDS, SIDE_BY_SIDE = 2, 4
CALLS = ROUNDS * SIDE_BY_SIDE
"""Calls of tools in each conversation: four at once, twice."""

ANSWERS = ROUNDS + 1
"""Answers of the model in each conversation: calls, and words at the end."""

THINK_SECONDS = (0.5, 2.0)
BRIEF_SECONDS = (14.0, 21.0)
"""The least and the most seconds of a call that ends within the grace of its worker."""

LONG_SECONDS = 80.0
"""The seconds of a call that does not."""

LONG_VARIANTS = 2

HEARTBEAT_TIMEOUT = 20.0
"""Seconds: a worker on a busy machine is not one that was lost."""


def make_scripts(seed: int) -> dict[str, Script]:
    """Make the scripts of the model; two of them have a call that outlasts every grace."""
    names = [f"drain-{nth}" for nth in range(VARIANTS)]
    return {
        name: _make_script(name, nth < LONG_VARIANTS, random.Random(f"{seed} {name}"))
        for nth, name in enumerate(names)
    }


def _make_script(name: str, has_long_call: bool, chance: random.Random) -> Script:
    seconds = [chance.uniform(*BRIEF_SECONDS) for _ in range(CALLS)]
    if has_long_call:
        seconds[chance.randrange(CALLS)] = LONG_SECONDS
    rounds = [seconds[nth : nth + SIDE_BY_SIDE] for nth in range(0, CALLS, SIDE_BY_SIDE)]
    answers = [_make_answer(lengths, chance) for lengths in rounds]
    return Script(name=name, answers=(*answers, ScriptedAnswer(content="It is done.")))


def _make_answer(lengths: list[float], chance: random.Random) -> ScriptedAnswer:
    """Make calls that may run side by side: of accounts of their own, or that only look."""
    may_repeat = chance.random() < 0.5
    calls = []
    for nth, seconds in enumerate(lengths):
        arguments: dict[str, Any] = {"number": nth, "seconds": seconds}
        if not may_repeat:
            arguments = {"account": f"account-{nth}", "amount": nth, "seconds": seconds}
        calls.append(
            ScriptedToolCall(name="look" if may_repeat else "deposit", arguments=arguments)
        )
    return ScriptedAnswer(tool_calls=tuple(calls), delay=chance.uniform(*THINK_SECONDS))


class Load:
    """A number of conversations at work all the while."""

    def __init__(self, client: Client, model: str, seed: int) -> None:
        self.client = client
        self.conversations: list[Conversation] = []
        self.failures: list[str] = []
        self._model = model
        self._chance = random.Random(seed)
        self._is_over = False

    @asynccontextmanager
    async def running(self, count: int) -> AsyncIterator[None]:
        """Keep `count` conversations at work while inside; then wait until the last has ended."""
        async with asyncio.TaskGroup() as tasks:
            for nth in range(count):
                tasks.create_task(self._keep_one(BRIEF_SECONDS[1] * nth / count))
            yield
            self._is_over = True

    async def _keep_one(self, delay: float) -> None:
        """Run one conversation after the other; the first after `delay` seconds."""
        await asyncio.sleep(delay)
        while not self._is_over:
            conversation = await self.client.start("Begin.", self._choose_agent())
            self.conversations.append(conversation)
            await conversation.handle.result()
            state = await read_state(conversation.log)
            if state.status != "finished":
                self.failures.append(f"{conversation.id}: {state.status}: {state.reason}")

    def _choose_agent(self) -> Agent:
        name = f"openai/drain-{self._chance.randrange(VARIANTS)}"
        return Agent(
            model=ModelSpec(name=name, api_base=self._model),
            tools=("reliability.chaos.tools:TOOLS",),
            tool_timeout=300.0,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            idle_timeout=0.001,
        )
