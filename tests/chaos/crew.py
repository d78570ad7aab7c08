"""The worker processes: killed, frozen, and replaced at once."""

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
from examples.bfcl.pollers import asking_for_steps

# What a worker imports takes longer than one that is killed every few seconds lives, and two cores
# could do nothing else. So each is a fork of one process that has done all imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.chaos.warm"])

MACHINES = 2
"""Disks that workers share: files made on one are restored on another."""

NEW_MACHINE = 0.1
"""How often the successor of a killed worker begins on an empty disk."""

REST = 0.5
"""Seconds before a worker that ended by itself is started again, as a supervisor would."""

FORESEEN = "perdure worker: "
"""Begins what a worker says that could not start, because a server was away for one."""

REASON = 30
"""Characters that tell why one could not start: what comes behind them names ports and folders."""

LAST_LINES = 20


@dataclass(eq=False)
class Member:
    process: ForkServerProcess
    machine: Path
    log: Path
    frozen: bool = False

    @property
    def pid(self) -> int:
        assert self.process.pid is not None, "it was started"
        return self.process.pid


@dataclass
class Crew:
    """`fallen` holds the last words of those that broke; `gave_up` counts, by the beginning of
    what they said, those that could not start; `members` are watched."""

    temporal: Client
    task_queue: str
    env: Mapping[str, str]
    folder: Path
    chance: random.Random
    fallen: list[str] = field(default_factory=list)
    gave_up: Counter[str] = field(default_factory=Counter)
    members: dict[Member, asyncio.Task[None]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._disks = itertools.count(1)

    async def hire(self, count: int) -> None:
        """The first ones; each disk gets the same number of them."""
        first = self._disk()
        disks = [first] + [self._disk() for _ in range(MACHINES - 1)]
        await self._hire_on(first)
        await self.until_at_work(1)
        # What the first one found out of the store, nobody need find out through a bad network.
        for disk in disks[1:]:
            shutil.copytree(first / "probed", disk / "probed")
        for nth in range(1, count):
            await self._hire_on(disks[nth % MACHINES])
        await self.until_at_work(count)

    async def kill(self, member: Member) -> None:
        """SIGKILL, and a successor; one that has ended by itself has one already."""
        if member not in self.members:
            return
        self.members.pop(member).cancel()
        member.process.kill()
        await asyncio.gather(_ended(member), self._succeed(member))

    def freeze(self, member: Member) -> None:
        member.frozen = True
        os.kill(member.pid, signal.SIGSTOP)

    def thaw(self, member: Member) -> None:
        os.kill(member.pid, signal.SIGCONT)
        member.frozen = False

    async def until_at_work(self, count: int) -> list[Member]:
        """Those that ask Temporal for work, as soon as they are so many."""
        while len(members := await self._at_work()) < count:
            await asyncio.sleep(0.1)
        return members

    async def stop(self) -> None:
        """End all of them in good order, by force those that do not."""
        for watching in self.members.values():
            watching.cancel()
        for member in self.members:
            if member.frozen:
                self.thaw(member)
            member.process.terminate()
        for member in self.members:
            try:
                async with asyncio.timeout(30):
                    await _ended(member)
            except TimeoutError:
                member.process.kill()
                await _ended(member)

    def _disk(self) -> Path:
        disk = self.folder / f"machine-{next(self._disks)}"
        disk.mkdir()
        return disk

    async def _succeed(self, member: Member) -> None:
        machine = member.machine
        if self.chance.random() < NEW_MACHINE:
            machine = self._disk()
            shutil.copytree(member.machine / "probed", machine / "probed")
        await self._hire_on(machine)

    def env_of(self, machine: Path, log: Path) -> dict[str, str]:  # noqa: ARG002
        """What a worker on this machine is told that writes this log."""
        return {**self.env, "PERDURE_DATA": str(machine)}

    async def _hire_on(self, machine: Path) -> None:
        log = self.folder / f"worker-{next(self._numbers)}.log"
        process = FORKS.Process(target=work, args=(self.env_of(machine, log), log), daemon=True)
        await asyncio.to_thread(process.start)
        member = Member(process, machine, log)
        self.members[member] = asyncio.create_task(self._watch(member))

    async def _watch(self, member: Member) -> None:
        await _ended(member)
        del self.members[member]
        last = member.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        if last and last[-1].startswith(FORESEEN):
            self.gave_up[last[-1].removeprefix(FORESEEN)[:REASON]] += 1
        else:
            code = member.process.exitcode
            self.fallen.append("\n".join([f"A worker ended by itself (exit code {code}):", *last]))
        await asyncio.sleep(REST)
        await self._hire_on(member.machine)

    async def _at_work(self) -> list[Member]:
        asking = await asking_for_steps(self.temporal, self.task_queue)
        return [one for one in self.members if one.pid in asking and not one.frozen]


async def _ended(member: Member) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(member.process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(member.process.sentinel)
