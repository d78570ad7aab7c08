"""Clients that attach at random moments, mostly in the middle of an answer."""

import asyncio
import random
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from perdure.storage.log.event_log import EventLog
from reliability.following.http_clients import watching_by_socket, watching_by_stream
from reliability.following.watcher import Watcher, wait_for_status, watching
from tests.gateway.stage import GatewayStage
from tests.harness import tool_call_answer

pytestmark = pytest.mark.long

ANSWERS = 2
"""Slow answers of a turn, one with a call of a tool."""

ANSWER_SECONDS = 1.2
CLIENTS = 20
"""Clients that attach during one turn."""


def make_answers(chance: random.Random) -> list[dict[str, Any]]:
    """Make the answers of a turn: words, a call with words, words."""
    return [
        tool_call_answer(("add", {"a": 1, "b": 2}), **slow_words(chance)),
        slow_words(chance),
    ]


def slow_words(chance: random.Random) -> dict[str, Any]:
    words = [f"{chance.randrange(10**9)}ü" for _ in range(chance.randint(10, 40))]
    return {"content": " ".join(words), "chunk_delay": ANSWER_SECONDS / len(words)}


def attach(
    stage: GatewayStage, kind: str, conversation_id: str, after_seq: int
) -> AbstractAsyncContextManager[Watcher]:
    match kind:
        case "stream":
            return watching_by_stream(stage.anna, conversation_id, after_seq)
        case "socket":
            return watching_by_socket(stage.anna, conversation_id, after_seq)
        case _:
            return watching(stage.gateway.followers, "anna", conversation_id, after_seq)


async def attach_once(stage: GatewayStage, conversation_id: str, chance: random.Random) -> Watcher:
    """Attach a client at a random moment of a turn, and stay until the turn is over."""
    await asyncio.sleep(chance.uniform(0, ANSWERS * ANSWER_SECONDS + 0.5))
    kind = chance.choice(["stream", "socket", "library"])
    after_seq = chance.choice([-1, -1, 0, 2])
    async with attach(stage, kind, conversation_id, after_seq) as watcher:
        await wait_for_status(watcher, "finished")
    return watcher


async def watch_turn(stage: GatewayStage, seed: str) -> list[Watcher]:
    """Begin a turn, attach all clients, and check what each of them got."""
    chance = random.Random(seed)
    conversation_id = await stage.start(*make_answers(chance), finished_timeout=5.0)
    attaching = (
        attach_once(stage, conversation_id, random.Random(f"{seed} {nth}"))
        for nth in range(CLIENTS)
    )
    watchers = await asyncio.gather(*attaching)
    log = EventLog(stage.gateway.store, "anna", conversation_id)
    ids = [entry.event.id for entry in await log.read(0, await log.end())]
    for watcher in watchers:
        got = [entry["id"] for entry in watcher.entries.values()]
        assert got == ids[watcher.after_seq + 1 :]
        for grown, whole in watcher.finished_texts:
            assert grown == whole
        assert not watcher.texts, "a text without an end"
    return watchers


async def attach_many(stage: GatewayStage, turns: int, at_once: int) -> list[Watcher]:
    watchers: list[Watcher] = []
    lanes = asyncio.Semaphore(at_once)

    async def run(nth: int) -> None:
        async with lanes:
            watchers.extend(await watch_turn(stage, f"seed {nth}"))

    async with asyncio.TaskGroup() as running:
        for nth in range(turns):
            running.create_task(run(nth))
    return watchers


def count_midway(watchers: list[Watcher]) -> int:
    """Count the clients whose first part of a text was not the first one that there was."""
    deltas = ([f for f in it.frames if f.kind == "delta"] for it in watchers)
    return sum(bool(parts) and parts[0].order > 0 for parts in deltas)


async def test_clients_that_attach_in_the_middle_miss_nothing(stage: GatewayStage) -> None:
    # On a busy machine all of them may come before the first word, or behind the last one.
    while not count_midway(await attach_many(stage, turns=2, at_once=2)):
        pass
