"""The servers, workers and three gateways of a run."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from perdure.client.client import Client
from perdure.embedded.ports import choose_ports
from perdure.embedded.seaweed import Seaweed
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from reliability.chaos.environment import BUCKET, TASK_QUEUE, USER, worker_environment
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.worker_pool import WorkerPool
from reliability.following.gateways import FORKS, GatewayProcess
from reliability.sessions.open_calls import serve_model

GATEWAYS = ("first", "second", "third")
WORKERS = 2

LIMIT = 3
"""The number of a user's conversations that may work at once: the default of a gateway."""


@dataclass
class Stage:
    """The gateways, the workers and Temporal of all rounds."""

    client: Client
    temporal: RestartableTemporal
    workers: WorkerPool
    gateways: list[GatewayProcess]
    model: str
    """The address of the model."""

    async def create_key(self, user_id: str) -> str:
        return (await create_api_key(self.client.store, user_id, "load", ("read", "write"))).secret

    def http_client(self, key: str, chance: random.Random) -> httpx.AsyncClient:
        """Return a client of one of the gateways, whichever is up or not."""
        url = chance.choice(self.gateways).url
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=30)


@asynccontextmanager
async def open_stage(folder: Path, seed: int) -> AsyncIterator[Stage]:
    """Start everything, with files in `folder`. Raises ProcessFailed where a server does not."""
    async with AsyncExitStack() as ending:
        temporal = await ending.enter_async_context(
            RestartableTemporal.running(folder / "temporal")
        )
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        ports = choose_ports(folder / "ports.json", (*GATEWAYS, "model"))
        model = FORKS.Process(target=serve_model, args=(ports["model"],), daemon=True)
        model.start()
        ending.callback(model.kill)
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        client = Client(await connect(temporal.address, quiet=True), store, USER, TASK_QUEUE)
        env = worker_environment(temporal.address, seaweed.endpoint, access)
        pool = WorkerPool(client.temporal, TASK_QUEUE, env, folder, random.Random(seed))
        await pool.start(WORKERS)
        ending.push_async_callback(pool.stop)
        trusted = {**env, "PERDURE_GATEWAY_TRUSTED": "true"}
        gateways = [
            GatewayProcess(ports[name], trusted, folder / f"gateway-{name}.log")
            for name in GATEWAYS
        ]
        for gateway in gateways:
            await gateway.start()
            ending.push_async_callback(gateway.stop)
        yield Stage(client, temporal, pool, gateways, f"http://127.0.0.1:{ports['model']}")
