import uuid
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import temporalio.client

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.embedded.temporal import TemporalServer
from perdure.models.router import ModelRouter
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests.harness import ConversationHarness


@pytest_asyncio.fixture(scope="session")
async def temporal(temporal_server: TemporalServer) -> temporalio.client.Client:
    return await connect(temporal_server.address)


@pytest.fixture
def harness(temporal: temporalio.client.Client, tmp_path: Path) -> ConversationHarness:
    store = FileStore(tmp_path / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    return ConversationHarness(
        client, Resources(store, ModelRouter(), tmp_path / "workspaces"), tmp_path
    )


@pytest.fixture(params=[False, True], ids=["ordinary calls", "local calls"])
def calls(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the fields of an agent that makes all calls as activities, or brief ones locally."""
    if not request.param:
        return {}
    tools = ("tests.example_tools:BRIEF_TOOLS", "think", "finish")
    return {"tools": tools, "local_activities": True}
