"""Trying probes in the sandboxes that this machine has."""

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.bubblewrap import Bubblewrap
from sandbox.choice import choose
from sandbox.groups import NO_GROUPS
from sandbox.limits import Limits
from sandbox.plan import landlock
from sandbox.sandbox import NONE, UID, Sandbox, Unusable
from sandbox.walls import Walls
from tests.sandbox.exhaustions import MEBI
from tests.sandbox.host import Host, host
from tests.sandbox.others import SURVIVORS
from tests.sandbox.probe import Probe
from tools.secrets.registry import NOTHING
from tools.shell.session import Session
from tools.terminal import passed_on

SMALL = Limits(memory=256 * MEBI, processes=200, file=150 * MEBI, files=1024, temporary=64 * MEBI)
"""Limits that can be reached without harm."""

NAMES = ("bubblewrap", "uid", "landlock")
PATIENCE = 120.0


@dataclass(frozen=True)
class Column:
    """A sandbox to be tried; `owner` has what is outside of it, and `why` is why it is not here.

    Where the sandbox is to hold against its own user's things, that user owns them.
    """

    name: str
    sandbox: Sandbox | None
    owner: int
    why: str = ""


def column(name: str, limits: Limits = SMALL, groups: bool = True) -> Column:
    """Without `groups`, no control groups are used even where they can be."""
    is_root = os.geteuid() == 0
    owner = UID if is_root else os.geteuid()
    if name == NONE.name:
        return Column(name, NONE, os.geteuid())
    try:
        found = _found(name)
    except Unusable as error:
        return Column(name, None, owner, str(error))
    own = replace(found, limits=limits, groups=found.groups if groups else NO_GROUPS)
    return Column(name, own, os.geteuid() if name == "uid" else owner)


def _found(name: str) -> Bubblewrap | Walls:
    """Raises Unusable."""
    as_root = name == "landlock" and os.geteuid() == 0
    if as_root and not landlock():
        raise Unusable("This kernel has no Landlock.")
    with tempfile.TemporaryDirectory(prefix="probed-") as folder:
        Path(folder).chmod(0o755)
        found = choose("uid" if as_root else name, Path(folder)).sandbox
    assert isinstance(found, Bubblewrap | Walls)
    return replace(found, name=name)


async def escapes(tried: Column, probes: Sequence[Probe]) -> dict[str, str]:
    """What each probe printed that came through."""
    assert tried.sandbox is not None
    through = {}
    async with host(tried.owner) as machine, attacking(machine, tried.sandbox) as attack:
        for probe in probes:
            machine.reset()
            output = await attack.attempt(probe)
            if probe.seen(machine, output):
                through[probe.name] = output
    return through


@dataclass
class Attack:
    """A shell in the sandbox, and another one when that is gone."""

    machine: Host
    sandbox: Sandbox
    session: Session | None = None
    network: bool = False

    @property
    def racing(self) -> str:
        """Seconds of a race: where it can be won, as many as that takes."""
        return "60" if self.sandbox is NONE else "0.3"

    async def attempt(self, probe: Probe) -> str:
        """What the probe prints."""
        file = self.machine.workspace / "probe"
        file.unlink(missing_ok=True)
        file.write_text(probe.script)
        file.chmod(0o644)
        session = await self._session(probe.network)
        call = session.start("bash probe 2>&1")
        session.console.awaited = True
        await call.finished_within(PATIENCE)
        with session.take() as output:
            printed = output.newest(1 << 20)
        if call.finished.done():
            session.settle()
        if probe in SURVIVORS or not call.finished.done():
            await self.close()
        return printed

    async def _session(self, network: bool) -> Session:
        if self.session is not None and (self.session.over or self.network != network):
            await self.close()
        if self.session is None:
            self.network = network
            environment = {**passed_on(), **self.machine.names, "RACING": self.racing}
            place = (self.machine.workspace, environment, NOTHING.masker())
            self.session = Session(*place, self.sandbox, network)
        return self.session

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()
        self.session = None


@asynccontextmanager
async def attacking(machine: Host, sandbox: Sandbox) -> AsyncIterator[Attack]:
    sandbox.prepare(machine.workspace)
    attack = Attack(machine, sandbox)
    try:
        yield attack
    finally:
        await attack.close()
