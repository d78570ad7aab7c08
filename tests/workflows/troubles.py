"""Waiting for what is told of trouble, and making some."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import temporalio.client
from temporalio.worker import Worker

from agent.start import Snapshot
from client.conversation import Conversation
from client.trouble import Trouble
from embedded.temporal import TemporalServer
from tests.cli.command import clean_environment
from tests.house import House
from workflows.sandbox import Sandbox

LONGEST = 100.0
"""Seconds to wait at most: a condition, never time, is waited for."""


async def told(talk: Conversation, *words: str) -> Snapshot:
    """Where it stands, once its status says what is wrong."""
    async with asyncio.timeout(LONGEST):
        while True:
            found = await talk.status()
            if found.trouble and all(word in found.trouble for word in words):
                return found
            await asyncio.sleep(0.05)


async def silent(talk: Conversation, *words: str) -> Trouble:
    """What is told of a step that has been silent for half a second."""
    async with asyncio.timeout(LONGEST):
        while True:
            found = await talk.trouble(quiet=0.5)
            if found and all(word in found.sentence for word in words):
                return found
            await asyncio.sleep(0.05)


async def well(talk: Conversation) -> None:
    """Wait until nothing is wrong any more."""
    async with asyncio.timeout(LONGEST):
        while (await talk.status()).trouble is not None:
            await asyncio.sleep(0.05)


def environment(house: House, server: TemporalServer) -> dict[str, str]:
    """For programs that are to find the conversations of this house."""
    return {
        **clean_environment(),
        "TEMPORAL_ADDRESS": server.address,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }


@contextlib.asynccontextmanager
async def other_worker(
    house: House, code: type, temporal: temporalio.client.Client | None = None
) -> AsyncIterator[list[str]]:
    """A worker whose conversations run other code; it gives those whose tasks failed here."""
    suspects: list[str] = []
    async with Worker(
        temporal or house.client.temporal,
        task_queue=house.client.task_queue,
        workflows=[code],
        workflow_runner=Sandbox(suspects.append),
    ):
        yield suspects
