"""The choice of a worker's sandbox: the one asked for, or the strongest that works here."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.bubblewrap import Bubblewrap, find_programs
from perdure.sandbox.cgroups import detect_cgroups
from perdure.sandbox.sandbox import TOOLS_UID, UNCONFINED, Access, Sandbox, SandboxUnusable
from perdure.sandbox.without_namespaces import NamespacelessSandbox

AUTO = "auto"
SANDBOX_NAMES = ("bubblewrap", "uid", "landlock", "none")

_PROBE_TIMEOUT = 60.0
"""Seconds; generous, for a busy machine."""

# Checks the promises of every sandbox: commands are not root, can write the workspace and the
# home folder, and can neither change the kernel's settings nor reach a file outside.
_PROBE_SCRIPT = """
[ "$(id -u)" != 0 ] || { echo 'commands are root' >&2; exit 1; }
true > in-the-workspace && rm in-the-workspace || exit 1
true > "$HOME/at-home" || exit 1
{ true > /proc/sys/kernel/hostname; } 2>/dev/null && { echo '/proc/sys is writable' >&2; exit 1; }
{ cat "$1"; echo written >> "$1"; } 2>/dev/null
exit 0
"""
_SECRET = b"nobody reads this"


@dataclass(frozen=True)
class Choice:
    """The chosen sandbox, and a sentence for each stronger one that does not work here."""

    sandbox: Sandbox
    rejections: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """A line for the operator: the sandbox's name and gaps."""
        return f"{self.sandbox.name}, which does not protect from: {'; '.join(self.sandbox.gaps)}"


def choose_sandbox(name: str, folder: Path, readable: Sequence[Path] = ()) -> Choice:
    """Choose the sandbox `name` (or the strongest, for `auto`) by running a probe in `folder`.

    `folder` will hold the workspaces; commands may read `readable` too. Raises SandboxUnusable.
    """
    if name not in (AUTO, *SANDBOX_NAMES):
        raise SandboxUnusable(
            f"There is no sandbox {name!r}: the sandboxes are {AUTO}, {', '.join(SANDBOX_NAMES)}."
        )
    if name == UNCONFINED.name:
        return Choice(UNCONFINED)
    rejections: list[str] = []
    for sandbox in _candidates(name, folder, tuple(readable)):
        try:
            _probe(sandbox, folder)
        except (SandboxUnusable, OSError, subprocess.TimeoutExpired) as error:
            rejections.append(f"The sandbox {sandbox.name} does not work here: {error}")
        else:
            return Choice(sandbox, tuple(rejections))
    return _fall_back(name, tuple(rejections))


def _fall_back(name: str, rejections: tuple[str, ...]) -> Choice:
    reason = " ".join(rejections) or f"The sandbox {name} is not for this worker's user."
    if name != AUTO:
        raise SandboxUnusable(f"{reason} Set PERDURE_SANDBOX to another one, or to auto.")
    if os.geteuid() == 0:
        raise SandboxUnusable(
            f"{reason} A root worker runs no commands as root: run it as another user, or set "
            "PERDURE_SANDBOX=none if that is what you want."
        )
    return Choice(UNCONFINED, rejections)


def _candidates(name: str, folder: Path, readable: tuple[Path, ...]) -> Iterator[Sandbox]:
    """Yield the sandboxes that `name` may stand for, the strongest first."""
    if sys.platform != "linux":
        return
    cgroups = detect_cgroups()
    if name in (AUTO, "bubblewrap"):
        yield from (Bubblewrap(program, folder, readable, cgroups) for program in find_programs())
    other, uid = ("uid", TOOLS_UID) if os.geteuid() == 0 else ("landlock", None)
    if name in (AUTO, other):
        yield NamespacelessSandbox(other, uid, folder, readable, cgroups)


def _probe(sandbox: Sandbox, folder: Path) -> None:
    """Run the probe script in the sandbox. Raises SandboxUnusable, OSError, TimeoutExpired."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="trial-", dir=folder) as workspace_name,
        tempfile.NamedTemporaryFile(prefix="trial-", dir=folder) as outside,
    ):
        outside.write(_SECRET)
        outside.flush()
        workspace = Path(workspace_name)
        sandbox.prepare(workspace)
        argv = ["/bin/sh", "-c", _PROBE_SCRIPT, "trial", outside.name]
        process = _run(sandbox, argv, Access(workspace))
        if _SECRET in process.stdout:
            raise SandboxUnusable("files outside of the workspace can be read.")
        if Path(outside.name).read_bytes() != _SECRET:
            raise SandboxUnusable("files outside of the workspace can be written.")
    if process.returncode != 0:
        last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")
        raise SandboxUnusable(f"{last_line or f'its trial ended with {process.returncode}'}.")


def _run(
    sandbox: Sandbox, argv: Sequence[str], access: Access
) -> "subprocess.CompletedProcess[bytes]":
    launch = sandbox.launch(argv, access, os.environ)
    with launch.cleanup:
        return subprocess.run(
            launch.argv,
            env=launch.environment,
            pass_fds=launch.pass_fds,
            cwd=access.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT,
            check=False,
        )
