"""Worker processes that are killed, frozen, and replaced at once."""

import asyncio
import itertools
import multiprocessing
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from temporalio.client import Client

from examples.bfcl.forked import work
from examples.bfcl.pollers import find_pollers

# What a worker imports takes longer than one that is killed every few seconds lives, and two cores
# could do nothing else. So each is a fork of one process that has done all imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["reliability.chaos.warm"])

MACHINES = 2
"""Disks that workers share: files made on one are restored on another."""

NEW_MACHINE_PROBABILITY = 0.1
"""The probability that the successor of a killed worker has an empty disk."""

RESTART_DELAY = 0.5
"""Seconds before a worker that ended by itself is started again, as a supervisor would."""

EXPECTED_START_ERRORS = "perdure worker: "
"""The beginning of the output of a worker that could not start, for instance without a server."""

MAX_REASON_CHARACTERS = 30
"""Characters of a start error that are counted as one reason: ports and folders come behind."""

LAST_LINES = 20


@dataclass(eq=False)
class WorkerProcess:
    process: ForkServerProcess
    machine: Path
    log: Path
    frozen: bool = False

    @property
    def pid(self) -> int:
        assert self.process.pid is not None, "it was started"
        return self.process.pid


@dataclass
class WorkerPool:
    """`fallen` holds the last words of those that broke; `gave_up` counts, by the beginning of
    what they said, those that could not start; `members` are watched."""

    temporal: Client
    task_queue: str
    env: Mapping[str, str]
    folder: Path
    random: random.Random
    crash_outputs: list[str] = field(default_factory=list)
    failed_starts: Counter[str] = field(default_factory=Counter)
    workers: dict[WorkerProcess, asyncio.Task[None]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._disks = itertools.count(1)

    async def start(self, count: int) -> None:
        """Start the first workers, the same number on each disk."""
        first = self._choose_machine()
        disks = [first] + [self._choose_machine() for _ in range(MACHINES - 1)]
        await self._start_on(first)
        await self.wait_until_polling(1)
        # What the first one found out of the store, nobody need find out through a bad network.
        for disk in disks[1:]:
            shutil.copytree(first / "probed", disk / "probed")
        for nth in range(1, count):
            await self._start_on(disks[nth % MACHINES])
        await self.wait_until_polling(count)

    async def kill(self, member: WorkerProcess) -> None:
        """Kill a worker with SIGKILL and replace it, unless it has ended by itself."""
        if member not in self.workers:
            return
        self.workers.pop(member).cancel()
        member.process.kill()
        await asyncio.gather(wait_for_exit(member), self._replace(member))

    def freeze(self, member: WorkerProcess) -> None:
        member.frozen = True
        os.kill(member.pid, signal.SIGSTOP)

    def thaw(self, member: WorkerProcess) -> None:
        os.kill(member.pid, signal.SIGCONT)
        member.frozen = False

    async def wait_until_polling(self, count: int) -> list[WorkerProcess]:
        """Wait until `count` workers poll Temporal, and return them."""
        while len(members := await self._polling_workers()) < count:
            await asyncio.sleep(0.1)
        return members

    async def stop(self) -> None:
        """Stop all workers, by force if necessary."""
        for watching in self.workers.values():
            watching.cancel()
        for member in self.workers:
            if member.frozen:
                self.thaw(member)
            member.process.terminate()
        for member in self.workers:
            try:
                async with asyncio.timeout(30):
                    await wait_for_exit(member)
            except TimeoutError:
                member.process.kill()
                await wait_for_exit(member)

    def _choose_machine(self) -> Path:
        disk = self.folder / f"machine-{next(self._disks)}"
        disk.mkdir()
        return disk

    async def _replace(self, member: WorkerProcess) -> None:
        machine = member.machine
        if self.random.random() < NEW_MACHINE_PROBABILITY:
            machine = self._choose_machine()
            shutil.copytree(member.machine / "probed", machine / "probed")
        await self._start_on(machine)

    def env_of(self, machine: Path, log: Path) -> dict[str, str]:  # noqa: ARG002
        """Return the environment of a worker on this machine with this log file."""
        return {**self.env, "PERDURE_DATA": str(machine)}

    async def _start_on(self, machine: Path) -> None:
        log = self.folder / f"worker-{next(self._numbers)}.log"
        process = FORKS.Process(target=work, args=(self.env_of(machine, log), log), daemon=True)
        await asyncio.to_thread(process.start)
        member = WorkerProcess(process, machine, log)
        self.workers[member] = asyncio.create_task(self._watch(member))

    async def _watch(self, member: WorkerProcess) -> None:
        await wait_for_exit(member)
        del self.workers[member]
        last = member.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        if last and last[-1].startswith(EXPECTED_START_ERRORS):
            self.failed_starts[
                last[-1].removeprefix(EXPECTED_START_ERRORS)[:MAX_REASON_CHARACTERS]
            ] += 1
        else:
            code = member.process.exitcode
            self.crash_outputs.append(
                "\n".join([f"A worker ended by itself (exit code {code}):", *last])
            )
        await asyncio.sleep(RESTART_DELAY)
        await self._start_on(member.machine)

    async def _polling_workers(self) -> list[WorkerProcess]:
        asking = await find_pollers(self.temporal, self.task_queue)
        return [worker for worker in self.workers if worker.pid in asking and not worker.frozen]


async def wait_for_exit(member: WorkerProcess) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(member.process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(member.process.sentinel)
