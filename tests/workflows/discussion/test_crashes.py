"""Workers are killed every three seconds; the log is that of an undisturbed discussion."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure.activities.support.resources import Resources
from perdure.agent.discussion.spec import DiscussionSpec
from perdure.client.client import Client
from perdure.client.discussion.discussions import Discussions
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.discussions.service import EventLogService
from perdure.storage.files import FileStore
from tests.harness import ConversationHarness
from tests.workers import worker_process
from tests.workflows.discussion.debate import (
    PASS,
    Answer,
    ballot,
    comparable,
    debate,
    read_all,
    wants,
)

NAMES = ("ada", "bob", "cyd", "dan")
SESSION = "four-days"
KILL_INTERVAL = 3.0
MODEL_DELAY = 0.7
"""Seconds of each answer, so that most kills hit a model's call."""


def answers_of(nth: int, name: str) -> list[Answer]:
    texts = [
        wants(nth, f"{name} begins"),
        f"{name} says one thing.",
        wants(9 - nth, f"{name} goes on"),
        f"{name} says another.",
        wants(5, f"{name} ends") if nth % 2 else PASS,
        *([f"{name} has the last word."] if nth % 2 else []),
        ballot("yes" if nth else "no", f"{name} knows why"),
    ]
    return [{"content": text, "delay": MODEL_DELAY} for text in texts]


def four_agents(folder: Path) -> DiscussionSpec:
    return debate(
        folder,
        {name: answers_of(nth, name) for nth, name in enumerate(NAMES)},
        moderator=[
            {"content": text, "delay": MODEL_DELAY}
            for text in ("They have begun.", "Most are for it.")
        ],
        phases=[{"name": "talk", "rounds": 2}, {"name": "decision", "end": "vote"}],
    )


@contextlib.asynccontextmanager
async def killed_workers(environment: dict[str, str], folder: Path) -> AsyncIterator[list[int]]:
    """Run two workers, one of which is killed and replaced at every interval; yield the kills.

    The time of a worker counts from when it works: on a busy machine its start takes longer.
    """
    kills: list[int] = []

    async def keep(nth: int) -> None:
        await asyncio.sleep(nth * KILL_INTERVAL)
        for number in itertools.count():
            log = folder / f"worker-{nth}-{number}.log"
            with worker_process(environment, log) as worker:
                while "polls" not in log.read_text():
                    await asyncio.sleep(0.1)
                await asyncio.sleep(2 * KILL_INTERVAL)
                worker.kill()
                kills.append(nth)

    tasks = [asyncio.create_task(keep(nth)) for nth in range(2)]
    try:
        yield kills
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def turns_of(harness: ConversationHarness) -> list[int]:
    """Return the turns of the conversations of the agents and the moderator."""
    handle = Discussions.from_client(harness.client).get(SESSION)
    names = (*NAMES, "moderator")
    conversations = [harness.client.conversation(handle.conversation_id(name)) for name in names]
    return [(await conversation.state()).turn for conversation in conversations]


async def archive_of(harness: ConversationHarness) -> list[tuple[tuple[int, int], ...]]:
    service = EventLogService(harness.client.store)
    return [pruning.ranges for pruning in await service.get_archive(SESSION, 100)]


@pytest.mark.longest
@pytest.mark.timeout(600)
async def test_a_debate_under_kills_has_the_log_of_an_undisturbed_one(
    harness: ConversationHarness, temporal_server: TemporalServer, tmp_path: Path
) -> None:
    spec = four_agents(tmp_path)
    async with harness.worker():
        handle = await Discussions.from_client(harness.client).start(spec, SESSION)
        wanted = await handle.result()

    store = FileStore(tmp_path / "disturbed")
    queue = f"{harness.client.task_queue}-disturbed"
    client = Client(harness.client.temporal, store, task_queue=queue)
    disturbed = replace(
        harness, client=client, resources=Resources(store, ModelRouter(), tmp_path / "unused")
    )
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": (tmp_path / "disturbed").as_uri(),
        "PERDURE_DATA": str(tmp_path / "data"),
        "PERDURE_TASK_QUEUE": queue,
    }
    async with killed_workers(environment, tmp_path) as kills:
        handle = await Discussions.from_client(client).start(spec, SESSION)
        result = await handle.result()

    assert len(kills) >= 3
    assert comparable(await read_all(disturbed, SESSION)) == comparable(
        await read_all(harness, SESSION)
    )
    assert result == wanted
    assert await turns_of(disturbed) == await turns_of(harness)
    assert await archive_of(disturbed) == await archive_of(harness)
    assert wanted.tally is not None
    assert wanted.tally.counts == {"yes": 3, "no": 1}
