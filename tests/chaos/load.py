"""What people do all the while: they talk, repeat themselves, pause and go on; and keep account."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from agent.spec import ModelSpec, Spec
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, TimedOut, Unreachable
from client.ids import new_conversation_id

T = TypeVar("T")

SENDERS = ("anna", "ben")
MESSAGES = 4
"""What each of them says in a conversation."""

PAUSES = 2
REPEATED = 0.2
"""How many messages are sent a second time, under the same id, by a sender who is not sure."""

WAIT = 20.0
"""Seconds for an answer to a message; then it is sent again, under the same id."""

AGAIN = 0.3
"""Seconds before one who was not heard tries again."""

LIMIT = 420.0
"""Seconds after which a conversation counts as hanging; undisturbed it takes half a minute."""

SILENCE = 2.0
"""Seconds that a worker may be silent: the heartbeat time-out of every step."""

PROMPT = "You help to find out whether anything is lost. Do what you are told."


@dataclass
class Talk:
    """`said` holds what was acknowledged, by sender and in order; `slots` where it was said to be.

    `end` is None while it goes on, and empty where it came to its end as it should.
    """

    conversation: Conversation
    model: str
    said: dict[str, list[str]] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    end: str | None = None
    tries: int = 0
    """Calls that had to be made again because nobody answered."""


def spec_of(model: str, address: str) -> Spec:
    return Spec(
        model=ModelSpec(name=f"openai/{model}", api_base=address, timeout=30.0),
        system_prompt=PROMPT,
        tools=("tests.chaos.tools:TOOLS", "file_editor"),
        heartbeat_timeout=SILENCE,
        tool_timeout=60.0,
    )


async def talk(client: Client, model: str, address: str, talks: list[Talk], seed: str) -> None:
    """Hold one conversation to its end; what became of it is in the last of `talks`."""
    chance = random.Random(seed)
    conversation = client.conversation(new_conversation_id())
    it = Talk(conversation, model)
    talks.append(it)
    try:
        async with asyncio.timeout(LIMIT):
            spec = spec_of(model, address)
            begin = lambda: conversation.start("Begin.", spec, "first-0")  # noqa: E731
            await _insist(it, begin)
            it.said["first"] = ["first-0"]
            async with asyncio.TaskGroup() as people:
                for sender in SENDERS:
                    people.create_task(_speak(it, sender, random.Random(f"{seed} {sender}")))
                people.create_task(_meddle(it, chance))
            await _close(it)
        it.end = ""
    except* TimeoutError:
        it.end = f"it was not over after {LIMIT:g} s"
    except* Exception as errors:  # whatever a caller is not told in our own words is a finding too
        it.end = "; ".join(map(repr, errors.exceptions))


async def _insist(it: Talk, deed: Callable[[], Awaitable[T]]) -> T:
    """Do it until somebody says that it is done: what a caller does who must be sure."""
    while True:
        try:
            return await deed()
        except (Unreachable, TimedOut):
            it.tries += 1
            await asyncio.sleep(AGAIN)


async def _speak(it: Talk, sender: str, chance: random.Random) -> None:
    said = it.said.setdefault(sender, [])
    for nth in range(MESSAGES):
        await asyncio.sleep(chance.uniform(0.2, 3.0))
        message_id, text = f"{sender}-{nth}", f"{sender} says {nth}: go on."
        for _ in range(2 if chance.random() < REPEATED else 1):
            await _say(it, text, message_id, by_update=chance.random() < 0.5)
        said.append(message_id)
    await _insist(it, lambda: it.conversation.finished(said[-1]))


async def _say(it: Talk, text: str, message_id: str, *, by_update: bool) -> None:
    if by_update:
        submit = lambda: it.conversation.submit(text, message_id, wait=WAIT)  # noqa: E731
        it.slots[message_id] = (await _insist(it, submit)).seq
    else:
        await _insist(it, lambda: it.conversation.send(text, message_id))


async def _meddle(it: Talk, chance: random.Random) -> None:
    """Pause now and then, and always go on."""
    for _ in range(PAUSES):
        await asyncio.sleep(chance.uniform(1.0, 6.0))
        try:
            await _insist(it, it.conversation.pause)
            await asyncio.sleep(chance.uniform(0.1, 1.5))
        except Conflict:
            continue  # nothing was running
        await _insist(it, it.conversation.resume)


async def _close(it: Talk) -> None:
    # Behind the last resume, which may begin a turn: a close in the middle of it would stop it.
    await _say(it, "That is all.", "last-0", by_update=True)
    it.said["last"] = ["last-0"]
    await _insist(it, lambda: it.conversation.finished("last-0"))
    await _insist(it, it.conversation.close)
    while await _insist(it, it.conversation.remote.is_alive):
        await asyncio.sleep(AGAIN)
