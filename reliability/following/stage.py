"""The servers, workers and gateways of a run."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx

from perdure.client.client import Client
from perdure.embedded.ports import choose_ports
from perdure.embedded.seaweed import Seaweed
from perdure.gateway.following.followers import Followers
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from perdure.testing.server import serve_scripts
from reliability.chaos.environment import BUCKET, TASK_QUEUE, USER, worker_environment
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.tools import EFFECTS
from reliability.chaos.worker_pool import WorkerPool
from reliability.following.gateways import GatewayProcess
from reliability.following.scripts import make_scripts

GATEWAYS = ("first", "second")

UNLIMITED = {"PERDURE_GATEWAY_RATES": '{"read": 1000000, "write": 1000000}'}
"""Settings of a gateway whose clients connect again more often than any user does."""


@dataclass
class Stage:
    """The gateways, the workers and Temporal; `followers` are of this process, which lives on."""

    client: Client
    temporal: RestartableTemporal
    workers: WorkerPool
    gateways: list[GatewayProcess]
    followers: Followers
    model: str
    key: str

    def http_client(self, chance: random.Random) -> httpx.AsyncClient:
        """Return a client of one of the gateways, whichever is up or not."""
        url = chance.choice(self.gateways).url
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=30)


@asynccontextmanager
async def open_stage(
    folder: Path,
    seed: int,
    workers: int,
    gateways: Sequence[str] = GATEWAYS,
    settings: Mapping[str, str] = UNLIMITED,
    worker_settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Stage]:
    """Start everything, with files in `folder`; `settings` are variables of the gateways,
    and `worker_settings` of the workers.

    Raises ProcessFailed where a server does not start.
    """
    async with AsyncExitStack() as ending:
        temporal = await ending.enter_async_context(
            RestartableTemporal.running(folder / "temporal")
        )
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        model = await ending.enter_async_context(serve_scripts(make_scripts(seed)))
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        client = Client(await connect(temporal.address, quiet=True), store, USER, TASK_QUEUE)
        env = worker_environment(temporal.address, seaweed.endpoint, access)
        pool = WorkerPool(
            client.temporal,
            TASK_QUEUE,
            {**env, EFFECTS: str(folder / "effects"), "OPENAI_BASE_URL": model, **worker_settings},
            folder,
            random.Random(seed),
        )
        await pool.start(workers)
        ending.push_async_callback(pool.stop)
        serving = await start_gateways(folder, {**env, **settings}, gateways)
        ending.push_async_callback(stop_gateways, serving)
        followers = Followers(client)
        ending.push_async_callback(followers.close)
        key = (await create_api_key(store, USER, "load", ("read", "write"))).secret
        yield Stage(client, temporal, pool, serving, followers, model, key)


async def start_gateways(
    folder: Path, env: dict[str, str], names: Sequence[str]
) -> list[GatewayProcess]:
    ports = choose_ports(folder / "gateway-ports.json", names)
    gateways = [GatewayProcess(ports[name], env, folder / f"gateway-{name}.log") for name in names]
    for gateway in gateways:
        await gateway.start()
    return gateways


async def stop_gateways(gateways: list[GatewayProcess]) -> None:
    for gateway in gateways:
        await gateway.stop()
