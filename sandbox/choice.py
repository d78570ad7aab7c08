"""Which sandbox a worker uses: the one that is asked for, or the strongest that works here."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.bubblewrap import Bubblewrap, programs
from sandbox.groups import Groups, groups
from sandbox.sandbox import NONE, UID, Place, Sandbox, Unusable
from sandbox.walls import Walls

AUTO = "auto"
NAMES = ("bubblewrap", "uid", "landlock", "none")

_PATIENCE = 60.0
"""Seconds that a trial may take on the busiest machine."""

# What every sandbox has to keep: that it is nobody's who matters, can work, and cannot leave.
_TRIAL = """
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
    """The sandbox, and a sentence for each stronger one that does not work here."""

    sandbox: Sandbox
    passed_over: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """For an operator, in one line."""
        return f"{self.sandbox.name}, which does not protect from: {'; '.join(self.sandbox.gaps)}"


def choose(wanted: str, folder: Path, reads: Sequence[Path] = ()) -> Choice:
    """Try what is wanted (a name, or `auto`) in `folder`, where the workspaces will be.

    `reads` is what commands may read beside the system. Raises Unusable.
    """
    if wanted not in (AUTO, *NAMES):
        raise Unusable(f"There is no sandbox {wanted!r}: the sandboxes are {AUTO}, {_names()}.")
    if wanted == NONE.name:
        return Choice(NONE)
    passed_over: list[str] = []
    for sandbox in _candidates(wanted, tuple(reads)):
        try:
            _try(sandbox, folder)
        except (Unusable, OSError, subprocess.TimeoutExpired) as error:
            passed_over.append(f"The sandbox {sandbox.name} does not work here: {error}")
        else:
            return Choice(sandbox, tuple(passed_over))
    return _without(wanted, tuple(passed_over))


def _without(wanted: str, passed_over: tuple[str, ...]) -> Choice:
    why = " ".join(passed_over) or f"The sandbox {wanted} is not for this worker's user."
    if wanted != AUTO:
        raise Unusable(f"{why} Set PERDURE_SANDBOX to another one, or to auto.")
    if os.geteuid() == 0:
        raise Unusable(
            f"{why} A root worker runs no commands as root: run it as another user, or set "
            "PERDURE_SANDBOX=none if that is what you want."
        )
    return Choice(NONE, passed_over)


def _names() -> str:
    return ", ".join(NAMES)


def _candidates(wanted: str, reads: tuple[Path, ...]) -> Iterator[Sandbox]:
    """Those that may be meant, the strongest first."""
    if sys.platform != "linux":
        return
    shared = groups()
    for sandbox in _known(reads, shared):
        if wanted in (AUTO, sandbox.name):
            yield sandbox


def _known(reads: tuple[Path, ...], shared: Groups) -> Iterator[Sandbox]:
    yield from (Bubblewrap(program, reads, shared) for program in programs())
    if os.geteuid() == 0:
        yield Walls("uid", UID, reads, shared)
    else:
        yield Walls("landlock", None, reads, shared)


def _try(sandbox: Sandbox, folder: Path) -> None:
    """Run a shell in it that looks at its walls. Raises Unusable, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="trial-", dir=folder) as made,
        tempfile.NamedTemporaryFile(prefix="trial-", dir=folder) as outside,
    ):
        outside.write(_SECRET)
        outside.flush()
        workspace = Path(made)
        sandbox.prepare(workspace)
        done = _run(sandbox, ["/bin/sh", "-c", _TRIAL, "trial", outside.name], Place(workspace))
        if _SECRET in done.stdout:
            raise Unusable("files outside of the workspace can be read.")
        if Path(outside.name).read_bytes() != _SECRET:
            raise Unusable("files outside of the workspace can be written.")
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2].rstrip(".")
        raise Unusable(f"{last or f'its trial ended with {done.returncode}'}.")


def _run(
    sandbox: Sandbox, argv: Sequence[str], place: Place
) -> "subprocess.CompletedProcess[bytes]":
    launch = sandbox.launch(argv, place, os.environ)
    with launch.over:
        return subprocess.run(
            launch.argv,
            env=launch.environment,
            pass_fds=launch.passed,
            cwd=place.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
