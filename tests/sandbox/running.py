"""Running probes in the sandboxes that this machine supports."""

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.sandbox.bubblewrap import Bubblewrap
from perdure.sandbox.cgroups import NO_CGROUPS
from perdure.sandbox.choice import choose_sandbox
from perdure.sandbox.launch_plan import landlock_version
from perdure.sandbox.owners import find_mapping_error
from perdure.sandbox.sandbox import TOOLS_UID, UNCONFINED, ResourceLimits, Sandbox, SandboxUnusable
from perdure.sandbox.without_namespaces import NamespacelessSandbox
from perdure.secrets.registry import NO_LENT_SECRETS
from perdure.tools.shell.session import ShellSession
from perdure.tools.terminal import inherited_environment
from tests.sandbox.exhaustions import MEBI
from tests.sandbox.host import Host, start_host
from tests.sandbox.others import SURVIVORS
from tests.sandbox.probe import Probe

SMALL = ResourceLimits(
    memory_bytes=256 * MEBI,
    processes=200,
    file_bytes=150 * MEBI,
    open_files=1024,
    temporary_bytes=64 * MEBI,
)
"""Limits that can be reached without harm."""

NAMES = ("bubblewrap", "mapped", "uid", "landlock")
"""`mapped` is root's bubblewrap in a directory of root's, whose owner it maps."""

PROBE_TIMEOUT = 120.0


@dataclass(frozen=True)
class SandboxUnderTest:
    """A sandbox to be tried; `owner` has what is outside of it, and `why` is why it is not here.

    Where the sandbox is to hold against its own user's things, that user owns them.
    """

    name: str
    sandbox: Sandbox | None
    owner: int
    why: str = ""


def set_up_sandbox(
    name: str, limits: ResourceLimits = SMALL, groups: bool = True
) -> SandboxUnderTest:
    """Without `groups`, no control groups are used even where they can be."""
    is_root = os.geteuid() == 0
    owner = TOOLS_UID if is_root else os.geteuid()
    if name == UNCONFINED.name:
        return SandboxUnderTest(name, UNCONFINED, os.geteuid())
    try:
        sandbox = _choose(name)
    except SandboxUnusable as error:
        return SandboxUnderTest(name, None, owner, str(error))
    own = replace(sandbox, limits=limits, cgroups=sandbox.cgroups if groups else NO_CGROUPS)
    return SandboxUnderTest(name, own, os.geteuid() if name in ("mapped", "uid") else owner)


def _choose(name: str) -> Bubblewrap | NamespacelessSandbox:
    """Raises Unusable."""
    as_root = name == "landlock" and os.geteuid() == 0
    if as_root and not landlock_version():
        raise SandboxUnusable("This kernel has no Landlock.")
    if name == "mapped":
        _require_mapping()
    with tempfile.TemporaryDirectory(prefix="probed-") as folder:
        Path(folder).chmod(0o755)
        chosen = {"mapped": "bubblewrap", "landlock": "uid" if as_root else name}.get(name, name)
        sandbox = choose_sandbox(chosen, Path(folder)).sandbox
    assert isinstance(sandbox, Bubblewrap | NamespacelessSandbox)
    return replace(sandbox, name=name)


def _require_mapping() -> None:
    """Raise SandboxUnusable where owners are not or cannot be mapped."""
    if os.geteuid() != 0:
        raise SandboxUnusable("Only for root are owners mapped.")
    with tempfile.TemporaryDirectory(prefix="probed-") as folder:
        if error := find_mapping_error(Path(folder)):
            raise SandboxUnusable(error)


async def find_escapes(tried: SandboxUnderTest, probes: Sequence[Probe]) -> dict[str, str]:
    """Find the lines of each probe that came through."""
    assert tried.sandbox is not None
    through = {}
    async with start_host(tried.owner) as machine, open_attack(machine, tried.sandbox) as attack:
        for probe in probes:
            machine.reset()
            output = await attack.attempt(probe)
            if probe.succeeded(machine, output):
                through[probe.name] = output
    return through


@dataclass
class Attack:
    """A shell in the sandbox, and another one when that is gone."""

    machine: Host
    sandbox: Sandbox
    session: ShellSession | None = None
    network: bool = False

    @property
    def racing(self) -> str:
        """Seconds of a race: where it can be won, as many as that takes."""
        return "60" if self.sandbox is UNCONFINED else "0.3"

    async def attempt(self, probe: Probe) -> str:
        """Run a probe and return its output."""
        file = self.machine.workspace / "probe"
        file.unlink(missing_ok=True)
        file.write_text(probe.script)
        file.chmod(0o644)
        session = await self._session(probe.network)
        call = session.start("bash probe 2>&1")
        session.console.unthrottled = True
        await call.wait(PROBE_TIMEOUT)
        with session.take_output() as output:
            printed = output.tail(1 << 20)
        if call.result.done():
            session.command = None
        if probe in SURVIVORS or not call.result.done():
            await self.close()
        return printed

    async def _session(self, network: bool) -> ShellSession:
        if self.session is not None and (self.session.closed or self.network != network):
            await self.close()
        if self.session is None:
            self.network = network
            environment = {**inherited_environment(), **self.machine.names, "RACING": self.racing}
            place = (self.machine.workspace, environment, NO_LENT_SECRETS.masker())
            self.session = ShellSession(*place, self.sandbox, network)
        return self.session

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()
        self.session = None


@asynccontextmanager
async def open_attack(machine: Host, sandbox: Sandbox) -> AsyncIterator[Attack]:
    sandbox.prepare(machine.workspace)
    attack = Attack(machine, sandbox)
    try:
        yield attack
    finally:
        await attack.close()
