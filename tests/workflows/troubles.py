"""Waiting for reported troubles, and causing some."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import temporalio.client
from temporalio.worker import Worker

from perdure.agent.loop.start import ConversationStatus
from perdure.client.conversation import Conversation
from perdure.client.trouble import Trouble
from perdure.embedded.temporal import TemporalServer
from perdure.workflows.sandbox import WorkflowSandbox
from tests.cli.command import clean_environment
from tests.harness import ConversationHarness

TROUBLE_TIMEOUT = 100.0
"""Seconds to wait at most: a condition, never time, is waited for."""


async def wait_for_trouble(talk: Conversation, *words: str) -> ConversationStatus:
    """Wait until the status reports a trouble with these words."""
    async with asyncio.timeout(TROUBLE_TIMEOUT):
        while True:
            status = await talk.status()
            if status.trouble and all(word in status.trouble for word in words):
                return status
            await asyncio.sleep(0.05)


async def wait_for_silence(talk: Conversation, *words: str) -> Trouble:
    """Wait for the trouble of a step that has been silent for half a second."""
    async with asyncio.timeout(TROUBLE_TIMEOUT):
        while True:
            trouble = await talk.diagnose(max_silence=0.5)
            if trouble and all(word in trouble.sentence for word in words):
                return trouble
            await asyncio.sleep(0.05)


async def wait_until_well(talk: Conversation) -> None:
    """Wait until no trouble is reported any more."""
    async with asyncio.timeout(TROUBLE_TIMEOUT):
        while (await talk.status()).trouble is not None:
            await asyncio.sleep(0.05)


def environment(harness: ConversationHarness, server: TemporalServer) -> dict[str, str]:
    """Return the environment by which programs find these conversations."""
    return {
        **clean_environment(),
        "TEMPORAL_ADDRESS": server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }


@contextlib.asynccontextmanager
async def other_worker(
    harness: ConversationHarness, code: type, temporal: temporalio.client.Client | None = None
) -> AsyncIterator[list[str]]:
    """A worker whose conversations run other code; it gives those whose tasks failed here."""
    suspects: list[str] = []
    async with Worker(
        temporal or harness.client.temporal,
        task_queue=harness.client.task_queue,
        workflows=[code],
        workflow_runner=WorkflowSandbox(suspects.append),
    ):
        yield suspects
