"""A Temporal server that is killed and started again, as it was and where it was."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.embedded.process import ChildProcess
from perdure.embedded.temporal import TEMPORAL_NAMESPACE, TemporalServer


class RestartableTemporal:
    """A Temporal server that restarts by the command of the embedded one's process."""

    def __init__(self, server: TemporalServer, command: list[str]) -> None:
        self.address = server.address
        self.process = server.process
        self._command = command

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, folder: Path) -> AsyncIterator[Self]:
        server = await TemporalServer.start(folder, ui=False)
        arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        temporal = cls(server, arguments)
        try:
            yield temporal
        finally:
            await temporal.process.stop()

    async def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    async def start(self) -> None:
        """On the same port, with the database that the killed one left."""
        log = self.process.log
        own = {name: text for name, text in os.environ.items() if not name.startswith("TEMPORAL_")}
        self.process = await ChildProcess.start("temporal", self._command, log, own)
        await self.process.wait_until(self._answers)

    async def _answers(self) -> bool:
        try:
            client = await Client.connect(self.address, namespace=TEMPORAL_NAMESPACE)
            request = DescribeNamespaceRequest(namespace=TEMPORAL_NAMESPACE)
            await client.workflow_service.describe_namespace(request, retry=False)
        except (RuntimeError, RPCError):  # RuntimeError is how the SDK says that it cannot connect
            return False
        return True
