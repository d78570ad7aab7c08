"""Conversations on a real Temporal server, with a worker in this process, and a collector."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import pytest_asyncio
from temporalio.worker import Worker

from perdure.activities import registry
from perdure.activities.support.task_reader import TaskReader
from perdure.secrets.masking import MaskingInterceptor
from perdure.telemetry.options import read_options
from perdure.telemetry.telemetry import Telemetry, start_telemetry
from perdure.tools.terminal import SESSIONS
from perdure.worker import build_worker
from perdure.workflows.actor import ActorReader
from perdure.workflows.conversation import Conversation
from perdure.workflows.sandbox import WorkflowSandbox
from tests.harness import ConversationHarness
from tests.telemetry.collector import Collector, run_collector
from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]


@pytest_asyncio.fixture
async def collector() -> AsyncIterator[Collector]:
    async with run_collector() as running:
        yield running


class ObservedHarness:
    """Conversations whose worker sends its telemetry to a collector."""

    def __init__(self, harness: ConversationHarness, telemetry: Telemetry) -> None:
        self.conversations, self.telemetry = harness, telemetry
        world = harness.resources
        self.world = replace(
            world,
            store=telemetry.observe_store(world.store),
            model=telemetry.observe_model(world.model),
        )
        self.observers = telemetry.interceptors(self.world.log, self.world.mask_of)

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        client = self.conversations.client
        async with build_worker(
            client.temporal, client.task_queue, self.world, observers=self.observers
        ):
            yield
        await self.close()

    @contextlib.asynccontextmanager
    async def forgetful_worker(self) -> AsyncIterator[None]:
        """Run a worker that replays the whole history at each workflow task."""
        client, world = self.conversations.client, self.world
        async with Worker(
            client.temporal,
            task_queue=client.task_queue,
            activities=registry.all_activities(world, client.temporal),
            interceptors=[
                TaskReader(),
                MaskingInterceptor(world.secrets_of_step),
                ActorReader(),
                *self.observers,
            ],
            workflows=[Conversation],
            workflow_runner=WorkflowSandbox(),
            max_cached_workflows=0,
        ):
            yield
        await self.close()

    async def close(self) -> None:
        await self.world.mcp.close()
        await SESSIONS.close()
        await asyncio.to_thread(self.telemetry.close)


Observe = Callable[..., ObservedHarness]


@pytest.fixture
def observe(
    harness: ConversationHarness, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> Observe:
    """Return what makes the harness of a worker that sends its spans to the collector.

    It takes further variables of OpenTelemetry.
    """

    def make(**more: str) -> ObservedHarness:
        environment = {**collector.environment, "OTEL_METRICS_EXPORTER": "none", **more}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        telemetry = start_telemetry(read_options(environment=environment))
        return ObservedHarness(harness, telemetry)

    return make
