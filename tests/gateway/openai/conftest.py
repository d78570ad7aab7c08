"""One gateway with agents for all tests of OpenAI's API, and OpenAI's own client."""

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from tests.gateway.openai.stage import OpenAiStage, open_stage
from tests.harness import ConversationHarness
from tests.workflows.conftest import temporal

__all__ = ["temporal"]


@pytest_asyncio.fixture(scope="session")
async def openai_stage(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpenAiStage]:
    folder = tmp_path_factory.mktemp("openai")
    store = FileStore(folder / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    resources = Resources(store, ModelRouter(), folder / "workspaces")
    async with open_stage(ConversationHarness(client, resources, folder)) as opened:
        yield opened
