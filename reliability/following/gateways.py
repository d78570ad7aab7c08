"""Gateway processes that are killed, and started again on the same ports."""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx

from examples.bfcl.forked import stand_alone
from perdure.gateway.__main__ import main

# As with workers, each is a fork of one process that has done all imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["reliability.chaos.warm", "reliability.following.gateways"])

READY_INTERVAL = 0.05


@dataclass
class GatewayProcess:
    """A gateway on a port of its own; `serve` is what its process does."""

    port: int
    env: Mapping[str, str]
    log: Path
    serve: "Callable[[Mapping[str, str], int, Path], None]" = field(
        default_factory=lambda: serve_gateway
    )
    process: ForkServerProcess | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the process, and wait until it serves."""
        arguments = (self.env, self.port, self.log)
        self.process = FORKS.Process(target=self.serve, args=arguments, daemon=True)
        await asyncio.to_thread(self.process.start)
        async with httpx.AsyncClient(base_url=self.url) as client:
            while True:
                try:
                    await client.get("/health")
                    return
                except httpx.HTTPError:
                    assert self.process.is_alive(), self.log.read_text()
                    await asyncio.sleep(READY_INTERVAL)

    async def kill(self) -> None:
        assert self.process is not None, "it was started"
        self.process.kill()
        await asyncio.to_thread(self.process.join)

    async def stop(self) -> None:
        """End it as an operator does."""
        assert self.process is not None, "it was started"
        self.process.terminate()
        await asyncio.to_thread(self.process.join)


def serve_gateway(env: Mapping[str, str], port: int, log: Path) -> None:
    """Be a gateway with these environment variables, whose output goes behind that in `log`."""
    stand_alone()
    with log.open("ab") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["perdure gateway", "--host", "127.0.0.1", "--port", str(port)]
    main()
