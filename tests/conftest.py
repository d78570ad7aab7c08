"""Real servers for every test that crosses a boundary: one of each in each test process."""

import contextlib
import gc
import os

# Before anything imports litellm, which would else fetch its prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer

T = TypeVar("T")

# A noisy machine says nothing about a property: examples may take as long as they take.
settings.register_profile(
    "perdure", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("perdure")


def pytest_collection_finish() -> None:
    """Exempt what is loaded from garbage collection, which took a tenth of the time."""
    gc.collect()
    gc.freeze()


async def start_on_free_ports(start: Callable[[], Awaitable[T]]) -> T:
    """Start a server, again if another test process took a port after it was chosen."""
    for _ in range(3):
        with contextlib.suppress(ProcessFailed):
            return await start()
    return await start()


@pytest_asyncio.fixture(scope="session")
async def temporal_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[TemporalServer]:
    """Temporal's dev server, without its page."""
    server = await start_on_free_ports(
        lambda: TemporalServer.start(tmp_path_factory.mktemp("temporal"), ui=False)
    )
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="session")
async def seaweed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Seaweed]:
    """An S3 store."""
    store = await start_on_free_ports(lambda: Seaweed.start(tmp_path_factory.mktemp("seaweed")))
    yield store
    await store.stop()
