"""The servers of an example: Temporal and S3, and the environment of its workers."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect

# What the caller's own settings would otherwise decide for the workers.
FOREIGN = ("AWS_", "OPENAI_", "PERDURE_", "TEMPORAL_")


@asynccontextmanager
async def start_servers(folder: Path, name: str) -> AsyncIterator[tuple[Client, Mapping[str, str]]]:
    """A client and a worker's environment; `name` is that of the bucket, the user and the queue."""
    async with AsyncExitStack() as ending:
        temporal = await TemporalServer.start(folder / "temporal", ui=False)
        ending.push_async_callback(temporal.stop)
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(name)
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = open_store(f"s3://{name}", access)
        ending.push_async_callback(store.close)
        client = Client(await connect(temporal.address), store, name, name)
        yield client, _environment(temporal, seaweed, folder, name)


def _environment(
    temporal: TemporalServer, seaweed: Seaweed, folder: Path, name: str
) -> dict[str, str]:
    """Build the environment of a worker: the addresses of server, store and folders."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return own | {
        "AWS_ACCESS_KEY_ID": seaweed.access_key,
        "AWS_SECRET_ACCESS_KEY": seaweed.secret_key,
        "AWS_ENDPOINT_URL": seaweed.endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
        "OPENAI_API_KEY": "the scripted model asks for none",
        "PERDURE_DATA": str(folder),
        "PERDURE_STORE": f"s3://{name}",
        "PERDURE_TASK_QUEUE": name,
        "PERDURE_USER": name,
        "TEMPORAL_ADDRESS": temporal.address,
    }
