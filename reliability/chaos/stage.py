"""The servers and workers of a chaos run, and what its agents are equipped with."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.client.client import Client
from perdure.embedded.seaweed import Seaweed
from perdure.storage.open import open_store
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from perdure.testing.server import serve_scripts
from reliability.chaos import proxy
from reliability.chaos.environment import BUCKET, TASK_QUEUE, USER, worker_environment
from reliability.chaos.load.debates import debate_scripts
from reliability.chaos.load.equipment import SECRET_KEYS, Equipment, equip
from reliability.chaos.load.equipped_scripts import equipped_scripts
from reliability.chaos.load.scripts import scripts
from reliability.chaos.proxy import FaultyProxy
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.tools import EFFECTS
from reliability.chaos.worker_pool import WorkerPool


@dataclass
class Stage:
    """The servers and workers of a run; `model` is the address of the scripted models."""

    client: Client
    temporal: RestartableTemporal
    network: FaultyProxy
    model: str
    equipment: Equipment
    workers: WorkerPool
    effects: Path
    writes: list[proxy.StoredWrite]


@asynccontextmanager
async def start_stage(seed: int, folder: Path) -> AsyncIterator[Stage]:
    """Start the servers, whose files are in `folder`, and no worker.

    Raises ProcessFailed where a server does not come up.
    """
    writes: list[proxy.StoredWrite] = []
    async with AsyncExitStack() as ending:
        enter = ending.enter_async_context
        temporal = await enter(RestartableTemporal.running(folder / "temporal"))
        seaweed = await Seaweed.start(folder / "store")
        ending.push_async_callback(seaweed.stop)
        await seaweed.make_bucket(BUCKET)
        network = FaultyProxy(seaweed.endpoint, seed, 0.0, stored=writes.append)
        await enter(network.listening())
        models = scripts(seed) | equipped_scripts(seed) | debate_scripts()
        model = await enter(serve_scripts(models))
        access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
        # Those who look on ask the store itself: what befalls the workers must not befall them.
        store = open_store(f"s3://{BUCKET}", access)
        ending.push_async_callback(store.close)
        equipment = await enter(equip(store, USER, folder))
        client = Client(await connect(temporal.address), store, USER, TASK_QUEUE)
        env = worker_environment(temporal.address, network.endpoint, access)
        pool = make_pool(client, env, folder, random.Random(seed + 1))
        effects = Path(pool.env[EFFECTS])
        yield Stage(client, temporal, network, model, equipment, pool, effects, writes)


def make_pool(
    client: Client, env: dict[str, str], folder: Path, chance: random.Random
) -> WorkerPool:
    """Return a pool without workers, whose tools write what they do into a file in `folder`."""
    counted = folder / "effects"
    counted.touch()
    more = {
        "PERDURE_APP_WRITERS": f'["{USER}"]',
        "PERDURE_SECRET_KEYS": SECRET_KEYS,
        EFFECTS: str(counted),
    }
    return WorkerPool(client.temporal, TASK_QUEUE, env | more, folder, chance)
