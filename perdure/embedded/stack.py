"""The embedded stack: Temporal, a store, a worker and a gateway on one machine."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from perdure.embedded.disk import Disk
from perdure.embedded.folder import lock_folder, make_folder
from perdure.embedded.gateway import GATEWAY_FINAL_CODES, GatewayServer
from perdure.embedded.ports import parse_port
from perdure.embedded.process import ChildProcess
from perdure.embedded.progress import WorkerLog, show_progress
from perdure.embedded.record import (
    StackInfo,
    merge_environment,
    provider_variables,
    remove_stack_info,
    write_stack_info,
)
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.supervisor import Supervisor
from perdure.embedded.temporal import (
    PORT_NAMES,
    TEMPORAL_NAMESPACE,
    CodecStarter,
    TemporalServer,
)
from perdure.embedded.worker_command import WORKER_COMMAND

STACK_BUCKET = "perdure"
WORKER_STOP_TIMEOUT = 10.0
WORKER_FINAL_CODES = (2,)
"""The exit code of a worker whose settings are wrong."""
WORKER_LOG = "worker.log"

logger = logging.getLogger("perdure.stack")


@dataclass
class Stack:
    """A running stack, which ends with the process that started it.

    What dies is started again on the same ports. Temporal and the worker, which agents at work keep
    busy, have a lower priority than the commands of their owner, the gateway and the store.
    """

    _folder: Path
    _temporal: TemporalServer
    _store: Seaweed
    _report: Callable[[str], None]
    _disk: Disk
    _gateway: GatewayServer | None = None
    _worker: ChildProcess = field(init=False)
    _worker_log: WorkerLog = field(init=False)
    _watches: list[asyncio.Task[Any]] = field(init=False)
    _supervisors: list[Supervisor] = field(default_factory=list)
    _exit_stack: AsyncExitStack = field(init=False)

    @classmethod
    async def start(
        cls,
        folder: Path,
        ui: bool = True,
        worker: Sequence[str] = WORKER_COMMAND,
        gateway: Sequence[str] | None = None,
        report: Callable[[str], None] = logger.warning,
        codec: CodecStarter | None = None,
        ports: Mapping[str, int] | None = None,
        progress: Callable[[str], None] = logger.info,
    ) -> Self:
        """Start a stack in `folder`.

        The data and the ports of earlier stacks in the folder are used; `ports` names those of
        `temporal`, `ui`, `store` and `gateway` instead. `worker` is the worker's command, its first
        word a path, and `gateway` that of a gateway, if there is to be one. `report` is called with
        a line whenever something died or the disk is full, and `progress` while the start takes
        long; it goes on until `wait_for_worker` returns. `codec`
        decrypts payloads for Temporal's UI. Raises FolderTaken if another stack has the folder,
        FolderUnusable, DiskFull, PortTaken, and ProcessFailed if a part does not start; nothing is
        left running then.
        """
        folder = make_folder(folder)
        async with AsyncExitStack() as exit_stack:
            exit_stack.enter_context(await lock_folder(folder))
            exit_stack.callback(remove_stack_info, folder)
            remove_stack_info(folder)
            disk = Disk(folder, report)
            disk.require_room()
            ports = ports or {}
            servers = await _prepare_servers(folder, ui, codec, ports, report)
            door = gateway and _prepare_gateway(folder, gateway, ports, servers, report)
            async with show_progress("Temporal and the store are starting", progress):
                await _launch_servers(*servers, exit_stack)
            await servers[1].make_bucket(STACK_BUCKET)
            stack = cls(folder, *servers, report, disk, door or None)
            await stack._start_worker(worker, exit_stack)
            await stack._start_gateway(exit_stack)
            stack._watch(progress)
            exit_stack.push_async_callback(stack._stop_watching)
            write_stack_info(stack.info)
            stack._exit_stack = exit_stack.pop_all()
        return stack

    async def _start_worker(self, command: Sequence[str], exit_stack: AsyncExitStack) -> None:
        """Start the worker, and the supervisors of all."""
        log, env = self._folder / WORKER_LOG, self._worker_environment()
        log.unlink(missing_ok=True)

        async def launch() -> ChildProcess:
            for supervisor in self._supervisors[:2]:  # without the servers it would end at once
                await supervisor.running.wait()
            self._worker = await ChildProcess.start(
                "worker", list(command), log, env, low_priority=True
            )
            return self._worker

        async def stop() -> None:
            await self._worker.stop(WORKER_STOP_TIMEOUT)

        await launch()
        exit_stack.push_async_callback(stop)
        wait, on_end = self._disk.wait_for_room, self._on_end
        self._supervisors = [
            Supervisor("Temporal", self._temporal.process, self._temporal.launch, wait, on_end),
            Supervisor("The store", self._store.process, self._store.launch, wait, on_end),
            Supervisor("The worker", self._worker, launch, wait, on_end, WORKER_FINAL_CODES),
        ]

    async def _start_gateway(self, exit_stack: AsyncExitStack) -> None:
        """Start the gateway, if there is to be one, and its supervisor."""
        gateway = self._gateway
        if gateway is None:
            return
        env = {**self._worker_environment(), "PERDURE_GATEWAY_TRUSTED": "true"}  # as of its owner
        env.pop("PERDURE_METRICS_ADDRESS", None)  # the worker has it
        if self._temporal.ui_url is not None:
            env["PERDURE_GATEWAY_TEMPORAL_UI"] = self._temporal.ui_url

        async def launch() -> ChildProcess:
            return await gateway.launch(env)

        await launch()
        exit_stack.push_async_callback(gateway.stop)
        wait, on_end, codes = self._disk.wait_for_room, self._on_end, GATEWAY_FINAL_CODES
        supervisor = Supervisor("The gateway", gateway.process, launch, wait, on_end, codes)
        self._supervisors.append(supervisor)

    def _watch(self, progress: Callable[[str], None]) -> None:
        self._worker_log = WorkerLog(self._worker.log, self._report, progress)
        self._watches = [
            asyncio.create_task(self._disk.watch(self._restart_servers)),
            asyncio.create_task(self._worker_log.follow()),
            asyncio.create_task(self._show_worker_start(progress)),
        ]

    async def _show_worker_start(self, progress: Callable[[str], None]) -> None:
        async with show_progress("The worker is starting: it loads its libraries", progress):
            await self._worker_log.ready.wait()
        with suppress(OSError):  # a full disk, which is reported
            write_stack_info(self.info)

    def _worker_environment(self) -> dict[str, str]:
        env = merge_environment(os.environ, self._environment)
        # Temporal's sandbox loads our code for every workflow: it must not be compiled each time.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PERDURE_LOG_FORMAT"] = "text"  # `WorkerLog` reads it, and so do people
        env["PERDURE_CLIENT_CODE"] = "true"  # all clients of a stack are of its owner
        return env

    def _provider_variables(self) -> tuple[str, ...]:
        """List the variables of models' providers; those of the stack itself are none."""
        env = self._worker_environment()
        return provider_variables({name: env[name] for name in env.keys() - self._environment})

    @property
    def info(self) -> StackInfo:
        """Return the present addresses and processes."""
        return StackInfo(
            folder=self._folder,
            temporal=self._temporal.address,
            ui=self._temporal.ui_url,
            codec=self._temporal.codec_url,
            store=self._store.endpoint,
            gateway=self._gateway.url if self._gateway else None,
            bucket=STACK_BUCKET,
            pids={
                "supervisor": os.getpid(),
                "temporal": self._temporal.pid,
                "weed": self._store.pid,
                "worker": self._worker.pid,
                **({"gateway": self._gateway.process.pid} if self._gateway else {}),
            },
            environment=self._environment,
            worker_variables=self._provider_variables(),
            sandbox=self._worker_log.sandbox,
            worker_ready=self._worker_log.ready.is_set(),
        )

    async def wait(self) -> None:
        """Wait, and raise ProcessFailed when something fails at every start."""
        watches = (supervisor.watch() for supervisor in self._supervisors)
        await asyncio.gather(*map(asyncio.shield, self._watches), *watches)

    async def wait_for_worker(self) -> None:
        """Wait until the worker takes work."""
        await self._worker_log.ready.wait()

    async def wait_for_gateway(self) -> None:
        """Wait until the gateway answers, if there is one."""
        if self._gateway is not None:
            await self._gateway.wait_until_ready()

    async def stop(self) -> None:
        """Stop the worker, then the servers; their data stays in the folder."""
        await self._exit_stack.aclose()

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PERDURE_DATA": str(self._folder),
            "PERDURE_STORE": f"s3://{STACK_BUCKET}",
            "TEMPORAL_ADDRESS": self._temporal.address,
            "TEMPORAL_NAMESPACE": TEMPORAL_NAMESPACE,
            "TEMPORAL_CONFIG_FILE": os.devnull,  # it may name keys of another server
            "AWS_ENDPOINT_URL_S3": self._store.endpoint,
            "AWS_ACCESS_KEY_ID": self._store.access_key,
            "AWS_SECRET_ACCESS_KEY": self._store.secret_key,
            "AWS_REGION": "us-east-1",
        }

    def _on_end(self, line: str) -> None:
        with suppress(OSError):  # the disk is full, which is reported
            write_stack_info(self.info)
        self._report(line)

    async def _restart_servers(self) -> None:
        """Have the servers started anew: a store whose write has failed takes no more."""
        servers = self._supervisors[:2]
        for supervisor in servers:
            supervisor.restart()
        await asyncio.gather(*(supervisor.running.wait() for supervisor in servers))

    async def _stop_watching(self) -> None:
        for task in self._watches:
            task.cancel()
        await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors))


async def _prepare_servers(
    folder: Path,
    ui: bool,
    codec: CodecStarter | None,
    ports: Mapping[str, int],
    report: Callable[[str], None],
) -> tuple[TemporalServer, Seaweed]:
    own = {name: ports[name] for name in PORT_NAMES if name in ports}
    store = Seaweed.prepare(folder / "seaweed", ports.get("store"), report, own.values())
    home = folder / "temporal"
    temporal = await TemporalServer.prepare(
        home, ui, codec, own, report, store.ports, low_priority=True
    )
    return temporal, store


def _prepare_gateway(
    folder: Path,
    command: Sequence[str],
    ports: Mapping[str, int],
    servers: tuple[TemporalServer, Seaweed],
    report: Callable[[str], None],
) -> GatewayServer:
    temporal, store = servers
    others = {*store.ports, parse_port(temporal.address)}
    if temporal.ui_url is not None:
        others.add(parse_port(temporal.ui_url))
    return GatewayServer.prepare(folder, command, ports.get("gateway"), report, others)


async def _launch_servers(
    temporal: TemporalServer, store: Seaweed, exit_stack: AsyncExitStack
) -> None:
    running: list[TemporalServer | Seaweed] = []

    async def launch(server: TemporalServer | Seaweed) -> None:
        await server.launch()
        running.append(server)

    async def stop_all() -> None:
        await asyncio.gather(*(server.stop() for server in running))

    exit_stack.push_async_callback(stop_all)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(launch(temporal))
            both.create_task(launch(store))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
