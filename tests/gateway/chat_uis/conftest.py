"""A gateway over Temporal and an S3 store, for chat UIs."""

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.models.router import ModelRouter
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access
from tests.gateway.openai.stage import OpenAiStage, open_stage
from tests.harness import ConversationHarness
from tests.workflows.conftest import temporal

__all__ = ["temporal"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chat_ui_stage(
    temporal: temporalio.client.Client,
    seaweed: Seaweed,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[OpenAiStage]:
    place, name = tmp_path_factory.mktemp("chat-uis"), f"chat-uis-{uuid.uuid4()}"
    await seaweed.make_bucket(name)
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    store = S3Store(name, access=access)
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    resources = Resources(store, ModelRouter(), place / "workspaces")
    rates = {"costly": 6000}  # each answer brings three tasks
    harness = ConversationHarness(client, resources, place)
    async with open_stage(harness, gateway_rates=rates) as opened:
        yield opened
