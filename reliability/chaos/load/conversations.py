"""The load: senders send and repeat messages, pause and resume, and record acknowledgements."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.conversation import Conversation
from perdure.errors import Conflict, TimedOut, Unreachable

T = TypeVar("T")

SENDER_COUNT = ("anna", "ben")
MESSAGES_PER_SENDER = 4
"""Messages of each sender in a conversation."""

MAX_PAUSES = 2
REPEAT_PROBABILITY = 0.2
"""How many messages are sent a second time, under the same id, by a sender who is not sure."""

ANSWER_TIMEOUT = 20.0
"""Seconds for an answer to a message; then it is sent again, under the same id."""

RETRY_DELAY = 0.3
"""Seconds before an unanswered call is retried."""

CONVERSATION_TIMEOUT = 420.0
"""Seconds after which a conversation counts as hanging; undisturbed it takes half a minute."""

HEARTBEAT_TIMEOUT = 2.0
"""Seconds that a worker may be silent: the heartbeat time-out of every step."""

PROMPT = "You help to find out whether anything is lost. Do what you are told."


@dataclass(kw_only=True)
class LoadItem:
    """A part of the load.

    `end` is None while it goes on, and empty where it came to its end as it should.
    """

    end: str | None = None
    retries: int = 0
    """Calls that were retried because nobody answered."""


@dataclass
class LoadConversation(LoadItem):
    """`message_ids` holds what was acknowledged, by sender and in order; `slots` where it was said
    to be. `equipped` says whether its agent starts with a clone, secrets and servers.
    """

    conversation: Conversation
    equipped: bool = False
    message_ids: dict[str, list[str]] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)


def make_agent(model: str, address: str) -> Agent:
    return Agent(
        model=ModelSpec(name=f"openai/{model}", api_base=address, timeout=30.0),
        system_prompt=PROMPT,
        tools=("reliability.chaos.tools:TOOLS", "file_editor"),
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        tool_timeout=60.0,
    )


async def run_conversation(it: LoadConversation, spec: Agent, seed: str) -> None:
    """Run one conversation to its end."""
    chance = random.Random(seed)
    async with recorded_end(it):
        begin = lambda: it.conversation.start("Begin.", spec, "first-0")  # noqa: E731
        await retry_until_answered(it, begin)
        it.message_ids["first"] = ["first-0"]
        async with asyncio.TaskGroup() as people:
            for sender in SENDER_COUNT:
                people.create_task(send_messages(it, sender, random.Random(f"{seed} {sender}")))
            people.create_task(pause_and_resume(it, chance))
        await close_conversation(it)


@asynccontextmanager
async def recorded_end(it: LoadItem) -> AsyncIterator[None]:
    """Record how an item of the load came to its end, which is not later than the time limit."""
    try:
        async with asyncio.timeout(CONVERSATION_TIMEOUT):
            yield
        it.end = it.end or ""
    except* TimeoutError:
        it.end = f"it was not over after {CONVERSATION_TIMEOUT:g} s"
    except* Exception as errors:  # whatever a caller is not told in our own words is a finding too
        it.end = "; ".join(map(repr, errors.exceptions))


async def retry_until_answered(it: LoadItem, deed: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until it is acknowledged."""
    while True:
        try:
            return await deed()
        except (Unreachable, TimedOut):
            it.retries += 1
            await asyncio.sleep(RETRY_DELAY)


async def send_messages(it: LoadConversation, sender: str, chance: random.Random) -> None:
    message_ids = it.message_ids.setdefault(sender, [])
    for nth in range(MESSAGES_PER_SENDER):
        await asyncio.sleep(chance.uniform(0.2, 3.0))
        message_id, text = f"{sender}-{nth}", f"{sender} says {nth}: go on."
        for _ in range(2 if chance.random() < REPEAT_PROBABILITY else 1):
            await send_message(it, text, message_id, by_update=chance.random() < 0.5)
        message_ids.append(message_id)
    await retry_until_answered(it, lambda: it.conversation.wait_for_turn(message_ids[-1]))


async def send_message(
    it: LoadConversation, text: str, message_id: str, *, by_update: bool
) -> None:
    if by_update:
        submit = lambda: it.conversation.submit(text, message_id, max_wait=ANSWER_TIMEOUT)  # noqa: E731
        it.slots[message_id] = (await retry_until_answered(it, submit)).seq
    else:
        await retry_until_answered(it, lambda: it.conversation.send(text, message_id))


async def pause_and_resume(it: LoadConversation, chance: random.Random) -> None:
    """Pause now and then, and always resume."""
    for _ in range(MAX_PAUSES):
        await asyncio.sleep(chance.uniform(1.0, 6.0))
        try:
            await retry_until_answered(it, it.conversation.pause)
            await asyncio.sleep(chance.uniform(0.1, 1.5))
        except Conflict:
            continue  # nothing was running
        await retry_until_answered(it, it.conversation.resume)


async def close_conversation(it: LoadConversation) -> None:
    # Behind the last resume, which may begin a turn: a close in the middle of it would stop it.
    await send_message(it, "That is all.", "last-0", by_update=True)
    it.message_ids["last"] = ["last-0"]
    await retry_until_answered(it, lambda: it.conversation.wait_for_turn("last-0"))
    await retry_until_answered(it, it.conversation.close)
    while await retry_until_answered(it, it.conversation.workflow.is_running):
        await asyncio.sleep(RETRY_DELAY)
