"""Followers over a real Temporal, store and worker."""

from collections.abc import AsyncIterator

import pytest_asyncio

from perdure.gateway.following.followers import Followers
from tests.gateway.conftest import stage
from tests.harness import ConversationHarness
from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "stage", "temporal"]


@pytest_asyncio.fixture
async def followers(harness: ConversationHarness) -> AsyncIterator[Followers]:
    """Return the followers of a process, and a worker that is at work."""
    made = Followers(harness.client)
    async with harness.worker():
        yield made
        await made.close()
