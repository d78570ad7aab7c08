"""Conversations of several turns, held by a client of any version of perdure.

It runs by its path, against the checkout that is first in PYTHONPATH, so it uses little of it. Its
argument is a job as JSON (see `__main__.py`). It begins conversations until the file `stop` is
there, ends those that are at work, and writes a line for each: its id, and its messages in order.
"""

import asyncio
import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio.client import Client as TemporalClient
from temporalio.service import RPCError

from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.errors import ClientError
from perdure.storage.errors import StoreError
from perdure.storage.log.state import read_state
from perdure.storage.open import open_store

POLL = 0.3
REST_SECONDS = (0.0, 20.0)
"""The seconds for which a conversation rests between two turns."""


async def hold_conversations(job: dict[str, Any]) -> None:
    temporal = await TemporalClient.connect(job["temporal"])
    client = Client(temporal, open_store(job["store"]), job["user"], job["queue"])
    chance = random.Random(job["seed"])
    async with asyncio.TaskGroup() as tasks:
        for nth in range(job["conversations"]):
            seed = chance.random()
            tasks.create_task(keep_one(client, job, nth, random.Random(seed)))


async def keep_one(client: Client, job: dict[str, Any], nth: int, chance: random.Random) -> None:
    while not Path(job["stop"]).exists():
        waits = nth % 3 == 0
        agent = Agent(
            model=ModelSpec(name=f"openai/{chance.choice(job['models'])}", api_base=job["model"]),
            tools=("reliability.chaos.tools:TOOLS",),
            confirmation=Confirmation(policy="always" if waits else "never"),
            heartbeat_timeout=job["heartbeat_timeout"],
            idle_timeout=chance.choice([0.1, 300.0]),
        )
        conversation = await client.start("turn 1", agent)
        messages = ["turn 1"]
        for turn in range(1, job["turns"] + 1):
            if turn > 1:
                await asyncio.sleep(chance.uniform(*REST_SECONDS))
                messages.append(f"turn {turn}")
                await repeat_send(conversation, messages[-1])
            await end_turn(conversation, turn, waits)
        print(json.dumps({"id": conversation.id, "messages": messages}), flush=True)


async def repeat_send(conversation: Conversation, text: str) -> None:
    """Send a message under one id until Temporal has taken it."""
    message_id = str(uuid4())
    while True:
        try:
            return await conversation.send(text, message_id=message_id)
        except (ClientError, RPCError):
            await asyncio.sleep(POLL)


async def end_turn(conversation: Conversation, turn: int, waits: bool) -> None:
    """Wait for the end of a turn; approve what waits for it, after a while."""
    while True:
        try:
            state = await read_state(conversation.log)
        except StoreError:
            await asyncio.sleep(POLL)
            continue
        if state.turn >= turn and state.status in ("finished", "error", "stuck"):
            return
        if waits and state.status == "waiting_for_confirmation":
            await asyncio.sleep(1)
            with contextlib.suppress(ClientError, RPCError):
                await conversation.respond(True, through=state.next_seq)
        await asyncio.sleep(POLL)


if __name__ == "__main__":
    asyncio.run(hold_conversations(json.loads(sys.argv[1])))
