import uuid
from pathlib import Path

import pytest
import pytest_asyncio
import temporalio.client

from activities.world import World
from client.client import Client
from client.connect import connect
from embedded.temporal import TemporalServer
from models.models import Models
from storage.files import FileStore
from tests.house import House


@pytest_asyncio.fixture(scope="session")
async def temporal(temporal_server: TemporalServer) -> temporalio.client.Client:
    return await connect(temporal_server.address)


@pytest.fixture
def house(temporal: temporalio.client.Client, tmp_path: Path) -> House:
    store = FileStore(tmp_path / "store")
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    return House(client, World(store, Models(), tmp_path / "workspaces"), tmp_path)
