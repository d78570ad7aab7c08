"""The servers, a worker and a gateway as strangers meet it, with two users."""

import json
import random
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.client.client import Client
from perdure.embedded.ports import choose_ports
from perdure.embedded.temporal import TemporalServer
from perdure.storage.files import FileStore
from perdure.storage.store import S3Access
from perdure.temporal.connect import connect
from perdure.testing.server import serve_app
from reliability.api.canary_users import CanaryUser, make_canary_user
from reliability.api.echo_model import EchoModel
from reliability.chaos.environment import TASK_QUEUE, worker_environment
from reliability.chaos.worker_pool import WorkerPool
from reliability.following.gateways import GatewayProcess

RATES = '{"read": 6e6, "write": 6e6, "costly": 6e6, "failure": 6e6}'
"""So many requests a minute as this machine can send."""


@dataclass
class Stage:
    """The gateway, its servers and its two users."""

    gateway: GatewayProcess
    users: list[CanaryUser]
    workers: WorkerPool


AGENT = {"model": {"name": "openai/echo", "vision": True}, "tools": ["file_editor"]}


@asynccontextmanager
async def open_stage(folder: Path, seed: int) -> AsyncIterator[Stage]:
    """Start everything, with files in `folder`. Raises ProcessFailed where a server does not."""
    async with AsyncExitStack() as ending:
        temporal = await TemporalServer.start(folder / "temporal", ui=False)
        ending.push_async_callback(temporal.stop)
        address = await ending.enter_async_context(serve_app(EchoModel().app()))
        store = FileStore(folder / "store")
        client = Client(await connect(temporal.address, quiet=True), store, task_queue=TASK_QUEUE)
        env = {
            **worker_environment(temporal.address, "", S3Access()),
            "OPENAI_BASE_URL": f"{address}/v1",
            "PERDURE_STORE": (folder / "store").as_uri(),
            "PERDURE_AGENT": json.dumps(AGENT),
            "PERDURE_SECRET_KEYS": f"first:{b64encode(bytes(32)).decode()}",
            "PERDURE_GATEWAY_RATES": RATES,
        }
        pool = WorkerPool(client.temporal, TASK_QUEUE, env, folder, random.Random(seed))
        await pool.start(2)
        ending.push_async_callback(pool.stop)
        [port] = choose_ports(folder / "gateway-ports.json", ("gateway",)).values()
        gateway = GatewayProcess(port, env, folder / "gateway.log")
        await gateway.start()
        ending.push_async_callback(gateway.stop)
        users = [await make_canary_user(store, gateway.url, user_id) for user_id in ("anna", "ben")]
        yield Stage(gateway, users, pool)
