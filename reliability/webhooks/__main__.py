"""`python -m reliability.webhooks`: posts to a server that fails half the time.

Each turn of some conversations is posted to four webhooks, while a worker is killed every five
seconds. Afterwards each end of a turn must have been taken by each of them, under the id of its
event, and nothing else may have come.
"""

import asyncio
import base64
import json
import random
import sys
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import SecretStr

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.conversation import Conversation
from perdure.client.webhooks.protocol import define_webhook
from perdure.client.webhooks.webhooks import Webhooks
from perdure.events.messages import MessageEvent
from perdure.webhooks.networks import parse_networks
from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.following.killers import is_set_within
from reliability.following.stage import Stage, open_stage
from reliability.webhooks.receiver import Receiver, run_receiver

WORKERS, WEBHOOKS = 2, 4
SHORT_POSTS, FULL_POSTS = 80, 1000
TURNS = 5
"""Turns of each conversation."""

PARALLEL_CONVERSATIONS = 25
KILL_PERIOD = 5.0
"""Seconds from one kill of a worker to the next: a new one needs its time to start."""

SETTLE_TIMEOUT = 1200.0
"""Seconds for all posts to be taken: one that fails ten times waits for minutes."""

MODEL = "following-0"
LOOPBACK = "127.0.0.1/32"
KEYS = f"first:{base64.b64encode(bytes(32)).decode()}"

SETTINGS = {
    "PERDURE_SECRET_KEYS": KEYS,
    "PERDURE_WEBHOOK_NETWORKS": json.dumps([LOOPBACK]),
    "PERDURE_WEBHOOK_RETRY_DELAY": "0.2",
}


async def run(posts: int, seed: int, folder: Path) -> dict[str, Any]:
    """Let conversations tell webhooks while workers are killed; return the report."""
    counts: Counter[str] = Counter()
    chance, began = random.Random(seed), monotonic()
    async with (
        open_stage(folder, seed, WORKERS, gateways=(), worker_settings=SETTINGS) as stage,
        run_receiver(random.Random(seed)) as receiver,
    ):
        stage.client.secret_keys = SecretStr(KEYS)
        await create_webhooks(stage, receiver)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep_killing(stage, over, chance, counts))
            conversations = await converse(stage, posts // (WEBHOOKS * TURNS))
            await await_posts(receiver, posts, began)
            over.set()
        findings = await audit(conversations, receiver)
        counts.update(receiver.counts)
        counts["posts"] = len(receiver.bodies)
        counts["posts taken"] = len(receiver.taken)
        counts["posts taken more than once"] = sum(it > 1 for it in receiver.taken.values())
        return {
            "seed": seed,
            "seconds": round(monotonic() - began),
            "counts": dict(sorted(counts.items())),
            "findings": findings + stage.workers.crash_outputs,
        }


async def create_webhooks(stage: Stage, receiver: Receiver) -> None:
    webhooks = Webhooks(stage.client, parse_networks([LOOPBACK]))
    for number in range(WEBHOOKS):
        made = await webhooks.create(define_webhook(f"{receiver.url}/{number}"))
        receiver.secrets[f"/{number}"] = made.secret


async def converse(stage: Stage, number: int) -> list[Conversation]:
    """Have conversations of so many turns, some at once; return them."""
    agent = Agent(model=ModelSpec(name=f"openai/{MODEL}", api_base=stage.model), tools=())
    turns = asyncio.Semaphore(PARALLEL_CONVERSATIONS)

    async def have_one() -> Conversation:
        async with turns:
            conversation = await stage.client.start("Begin.", agent)
            await conversation.result()
            for _ in range(TURNS - 1):
                await conversation.send("Again.")
                await conversation.result()
            return conversation

    return await asyncio.gather(*(have_one() for _ in range(number)))


async def keep_killing(
    stage: Stage, over: asyncio.Event, chance: random.Random, counts: Counter[str]
) -> None:
    while not await is_set_within(over, KILL_PERIOD):
        await stage.workers.kill(chance.choice(list(stage.workers.workers)))
        counts["workers killed"] += 1


async def await_posts(receiver: Receiver, posts: int, began: float) -> None:
    """Wait until so many posts were taken; what is missing then is found by `audit`."""
    try:
        async with asyncio.timeout(SETTLE_TIMEOUT):
            while len(receiver.taken) < posts:
                print(f"{len(receiver.taken)} of {posts} posts are taken", file=sys.stderr)
                await asyncio.sleep(10)
    except TimeoutError:
        seconds = monotonic() - began
        receiver.findings.append(f"{len(receiver.taken)} of {posts} were taken in {seconds:.0f} s")


async def audit(conversations: list[Conversation], receiver: Receiver) -> list[str]:
    """Return what was lost, and what came that nobody should have sent."""
    expected = {
        (path, event_id)
        for conversation in conversations
        for event_id in await list_ends(conversation)
        for path in receiver.secrets
    }
    changed = [place for place, bodies in receiver.bodies.items() if len(bodies) > 1]
    return [
        *receiver.findings,
        *(f"{place}: was not taken" for place in expected - receiver.taken.keys()),
        *(f"{place}: is the end of no turn" for place in receiver.bodies.keys() - expected),
        *(f"{place}: came with another body" for place in changed),
    ]


async def list_ends(conversation: Conversation) -> list[str]:
    """List the ids of the events that end the turns of a conversation."""
    events = list(await conversation.event_log.read())
    ends = [it.id for it in events if isinstance(it, MessageEvent) and it.source == "agent"]
    assert len(ends) == TURNS, f"{conversation.id} has {len(ends)} answers"
    return ends


def main() -> None:
    """Exit code 0 means that each post was taken at least once, under one id."""
    parser = new_parser("reliability.webhooks", __doc__)
    parser.add_argument("--posts", type=int, help="to be taken, a multiple of 20")
    options = parse_options(parser)
    posts = options.posts or (SHORT_POSTS if options.short else FULL_POSTS)
    run_harness(lambda folder: run(posts, options.seed, folder), options.keep)


if __name__ == "__main__":
    main()
