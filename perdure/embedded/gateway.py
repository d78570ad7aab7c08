"""The gateway of an embedded stack: a process with a port of its own."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from perdure.embedded.ports import choose_ports
from perdure.embedded.process import ChildProcess, request_status

GATEWAY_STOP_TIMEOUT = 12.0
"""Seconds: a gateway gives requests ten to end."""

GATEWAY_FINAL_CODES = (2,)
"""The exit code of a gateway whose settings are wrong."""

POLL_INTERVAL = 0.1

GATEWAY_HOST = "127.0.0.1"


@dataclass
class GatewayServer:
    """A gateway that serves on a loopback address."""

    port: int
    process: ChildProcess = field(init=False)
    _folder: Path
    _command: Sequence[str]

    @classmethod
    def prepare(
        cls,
        folder: Path,
        command: Sequence[str],
        port: int | None = None,
        report: Callable[[str], None] | None = None,
        others: Collection[int] = (),
    ) -> Self:
        """Choose the port of a gateway: `port`, or that of the last start. Raises PortTaken.

        `others` are ports that other servers are about to take.
        """
        wanted = {"gateway": port} if port is not None else {}
        ports = choose_ports(folder / "gateway.json", ["gateway"], wanted, 0, report, others)
        return cls(ports["gateway"], folder, command)

    @property
    def url(self) -> str:
        return f"http://{GATEWAY_HOST}:{self.port}"

    async def launch(self, env: Mapping[str, str]) -> ChildProcess:
        """Start it; it answers a little later."""
        address = ["--host", GATEWAY_HOST, "--port", str(self.port)]
        log = self._folder / "gateway.log"
        self.process = await ChildProcess.start("gateway", [*self._command, *address], log, env)
        return self.process

    async def wait_until_ready(self) -> None:
        """Wait until it answers; its supervisor tells if it never does."""
        while await request_status("GET", self.port, "/health") != 200:  # noqa: ASYNC110
            await asyncio.sleep(POLL_INTERVAL)

    async def stop(self) -> None:
        await self.process.stop(GATEWAY_STOP_TIMEOUT)
