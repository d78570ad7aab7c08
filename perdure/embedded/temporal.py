"""Temporal's dev server, tuned for the latency of a single conversation."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from perdure.embedded.folder import make_folder
from perdure.embedded.ports import choose_ports, parse_port
from perdure.embedded.process import ChildProcess, find_program, is_listening
from perdure.temporal.search_attributes import ATTRIBUTES

TEMPORAL_NAMESPACE = "default"

PORT_NAMES = ("temporal", "ui")

# With WAL and synchronous=2, acknowledged writes survive a power cut.
SQLITE_PRAGMAS = ("journal_mode=wal", "synchronous=2")

DYNAMIC_CONFIG = (
    # By default a shard's queues are read 20 times a second: 50 ms for each activity of a single
    # conversation.
    "history.transferProcessorMaxPollRPS=2000",
    # By default every timer, retry and time-out is up to a second late, and a run that lasted less
    # than a second delays the next run of its workflow by one.
    'history.timerProcessorMaxTimeShift="10ms"',
    'history.continueAsNewMinInterval="10ms"',
    # By default a second whose timers are read three times before all are done counts as stuck.
    # What is left of it is read behind all others: beside 32 conversations that took minutes.
    "history.queueReaderStuckCriticalAttempts=0",
    # The daily version check is off, and operators may pause workflows.
    "frontend.enableServerVersionCheck=false",
    "frontend.WorkflowPauseEnabled=true",
    # Batches share a queue by priority. With the default of four partitions, neither their shares
    # nor the rate limit of a queue would be exact.
    "matching.enableFairness=true",
    # By default polls of a worker for what it has in its cache also bring workflows that begin,
    # past the limit on those.
    "matching.priorityBacklogForwarding=false",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)

CodecStarter = Callable[[str], Awaitable[str]]
"""Start a codec server for the UI at a given URL, and return the codec server's URL."""


@dataclass
class TemporalServer:
    """A server; `address` is HOST:PORT of its gRPC, `ui_url` None if it has no UI."""

    address: str
    ui_url: str | None
    codec_url: str | None
    _command: list[str]
    _log: Path
    _low_priority: bool
    process: ChildProcess = field(init=False)

    @classmethod
    async def prepare(
        cls,
        folder: Path,
        ui: bool = True,
        codec: CodecStarter | None = None,
        ports: Mapping[str, int] | None = None,
        report: Callable[[str], None] | None = None,
        others: Collection[int] = (),
        options: Sequence[str] = (),
        low_priority: bool = False,
    ) -> Self:
        """Choose the ports of a server whose database stays in `folder`, without starting it.

        `ports` may name those of `temporal` and `ui`; else they are remembered from the last start.
        `others` are the ports that another server is about to take, `options` further ones of the
        command. With `low_priority` others come first where the processor is taken.
        The UI shows payloads as they are, or decrypted by `codec`. Raises PortTaken.
        """
        make_folder(folder)
        file = folder / "ports.json"
        chosen = choose_ports(file, PORT_NAMES, ports, report=report, others=others)
        port, ui_port = (chosen[name] for name in PORT_NAMES)
        log = folder / "temporal.log"
        log.unlink(missing_ok=True)
        ui_url = f"http://127.0.0.1:{ui_port}" if ui else None
        codec_url = await codec(ui_url) if ui_url and codec else None
        command = _build_command(folder, port, ui_port if ui else None, codec_url)
        command += options
        return cls(f"127.0.0.1:{port}", ui_url, codec_url, command, log, low_priority)

    @classmethod
    async def start(
        cls,
        folder: Path,
        ui: bool = True,
        codec: CodecStarter | None = None,
        low_priority: bool = False,
    ) -> Self:
        """Prepare a server as `prepare` does, and launch it."""
        server = await cls.prepare(folder, ui, codec, low_priority=low_priority)
        await server.launch()
        return server

    async def launch(self) -> ChildProcess:
        """Start the server, or start it again on the same ports.

        Returns when the namespace `default` answers. Raises ProcessFailed if it never does.
        """
        # The server reads TEMPORAL_* too, which are about another server.
        own = {name: text for name, text in os.environ.items() if not name.startswith("TEMPORAL_")}
        self.process = await ChildProcess.start(
            "temporal", self._command, self._log, own, low_priority=self._low_priority
        )
        await self.process.wait_until(lambda: _is_ready(self.address))
        return self.process

    @property
    def pid(self) -> int:
        return self.process.pid

    async def stop(self) -> None:
        """Stop the server; its database stays in its folder."""
        await self.process.stop()


def _build_command(folder: Path, port: int, ui_port: int | None, codec: str | None) -> list[str]:
    command = [find_program("temporal"), "server", "start-dev"]
    command += ["--ip", "127.0.0.1", "--port", str(port), "--log-level", "warn"]
    command += ["--db-filename", str(folder / "temporal.sqlite")]
    for pragma in SQLITE_PRAGMAS:
        command += ["--sqlite-pragma", pragma]
    for value in DYNAMIC_CONFIG:
        command += ["--dynamic-config-value", value]
    for key in ATTRIBUTES:
        kind = key.indexed_value_type.name.title().replace("_", "")  # KEYWORD_LIST: KeywordList
        command += ["--search-attribute", f"{key.name}={kind}"]
    if ui_port is None:
        return [*command, "--headless"]
    command += ["--ui-port", str(ui_port), "--ui-disable-news-fetch"]
    return [*command, "--ui-codec-endpoint", codec] if codec else command


async def _is_ready(address: str) -> bool:
    if not await is_listening(parse_port(address)):
        return False
    try:
        client = await Client.connect(address, namespace=TEMPORAL_NAMESPACE)
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=TEMPORAL_NAMESPACE), retry=False
        )
    except (RuntimeError, RPCError):  # the SDK raises RuntimeError if it cannot connect
        return False
    return True
