"""The sandboxes of a machine without namespaces: another user, Landlock, the filter of calls."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sandbox.groups import NO_GROUPS, Groups
from sandbox.limits import USUAL, Limits
from sandbox.owner import give
from sandbox.plan import Plan, landlock
from sandbox.sandbox import Launch, Place, Unusable
from sandbox.system import DEVICES, also_read, path_of, roots

_TO_ALL = (
    "a flaw in the kernel itself",
    "being seen: commands see the names and arguments of this machine's processes",
    "whatever this machine can reach, its own services too, where the network is allowed",
    "the workspace being filled, though never the whole disk",
)


@dataclass(frozen=True)
class Walls:
    """Programs see the machine as it is and can open only what they are given.

    `uid` is whom they are, or None for the worker's own user. They have no sockets where the
    network is not allowed, and a temporary folder of their own in place of `/tmp` and home.
    """

    name: str
    uid: int | None
    reads: tuple[Path, ...] = ()
    groups: Groups = NO_GROUPS
    private: bool = False
    limits: Limits = USUAL

    @property
    def gaps(self) -> tuple[str, ...]:
        return (*_TO_ALL, *self.groups.gaps, *_lacking(self.uid, landlock()))

    def prepare(self, workspace: Path) -> None:
        give(workspace)

    def launch(self, argv: Sequence[str], place: Place, environment: Mapping[str, str]) -> Launch:
        reads = [*also_read(environment), *self.reads, *place.reads]
        if self.uid is not None:
            _check_reachable(place.workspace, self.uid)
        with ExitStack() as failing:
            over = failing.enter_context(ExitStack())
            own = self._folder(over)
            groups = self.groups.joined(self.limits, over)
            if place.terminal is not None and self.uid is not None:
                os.fchown(place.terminal, self.uid, -1)
            plan = Plan(
                folder=place.workspace,
                reads=[*roots(), *reads, Path("/proc")],
                writes=[place.workspace, own],
                devices=[Path("/dev", name) for name in DEVICES],
                limits=self.limits,
                sockets=place.network,
                tcp=place.network,
                uid=self.uid,
                users=self.uid is not None,
                counted=self.uid is not None,
                groups=groups,
            )
            path = path_of(environment, reads)
            homes = {"HOME": str(own), "TMPDIR": str(own), "PATH": path}
            return Launch(
                plan.argv(argv),
                {**environment, **homes},
                [*place.passed, *groups],
                over.pop_all(),
            )

    def _folder(self, over: ExitStack) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="perdure-"))
        over.callback(shutil.rmtree, folder, ignore_errors=True)
        if self.uid is not None:
            os.chown(folder, self.uid, self.uid)
        return folder


def _lacking(uid: int | None, version: int) -> Iterator[str]:
    if not version:
        yield "reading what every user of this machine may read: this kernel has no Landlock"
    if uid is None:
        yield "changing the permissions, owners and times of its user's other files"
        yield "what its user's other programs keep in System V memory"
        yield "slowing down its user's other processes"
        if version < 6:
            yield "signals to its user's other processes"
        if version < 3:
            yield "emptying its user's other files"


def _check_reachable(workspace: Path, uid: int) -> None:
    """Raises Unusable where the user cannot come to the workspace by its name."""
    for folder in workspace.resolve().parents:
        found = folder.stat()
        wanted = stat.S_IXUSR if found.st_uid == uid else stat.S_IXOTH
        if not found.st_mode & wanted:
            raise Unusable(
                f"The workspace {workspace} cannot be reached by the tools' user {uid}, because "
                f"{folder} is closed to it: open that folder with `chmod o+x`, or keep workspaces "
                "elsewhere (PERDURE_DATA)."
            )
