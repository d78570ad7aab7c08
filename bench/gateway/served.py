"""A gateway whose requests to Temporal and the store are counted: `python -m bench.gateway.served`.

It serves on a free port, whose address it prints, until SIGTERM; `/counts` has the requests so far.
"""

import asyncio
import sys
from collections import Counter

import uvicorn
from fastapi import FastAPI

from perdure.client.client import Client
from perdure.client.store import open_configured_store
from perdure.gateway.app import create_app
from perdure.gateway.gateway import Gateway
from perdure.gateway.serve import describe_address, listen, server_config
from perdure.operations.worker.process import find_loop_factory
from perdure.settings.settings import load_settings
from reliability.following.counting import CountingStore, CountingTemporal

HOST = "127.0.0.1"

COUNT_INTERVAL = 1.0
"""Seconds between two looks at the counts of the SDK, which keeps a limited number of changes."""


async def serve() -> None:
    settings = load_settings()
    temporal = CountingTemporal()
    store = CountingStore(open_configured_store(settings))
    connection = await temporal.connect(sys.argv[1])
    client = Client(connection, store, settings.user, settings.task_queue)
    app = create_app(Gateway(client, settings))
    asked: Counter[str] = Counter()
    add_counts(app, store, temporal, asked)
    with listen(HOST, 0) as listener:
        print(describe_address(HOST, listener), flush=True)
        config = server_config(app, settings.gateway_max_body)
        counting = asyncio.create_task(keep_counting(temporal, asked))
        await uvicorn.Server(config).serve(sockets=[listener])
        counting.cancel()


async def keep_counting(temporal: CountingTemporal, asked: Counter[str]) -> None:
    while True:
        asked.update(temporal.take_counts())
        await asyncio.sleep(COUNT_INTERVAL)


def add_counts(
    app: FastAPI, store: CountingStore, temporal: CountingTemporal, asked: Counter[str]
) -> None:
    @app.get("/counts")
    async def show_counts() -> dict[str, dict[str, int]]:
        asked.update(temporal.take_counts())
        return {"store": dict(store.counts), "temporal": dict(asked)}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(serve())
