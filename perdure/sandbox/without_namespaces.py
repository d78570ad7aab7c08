"""The sandboxes for machines without namespaces: another user, Landlock and seccomp."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.cgroups import NO_CGROUPS, Cgroups
from perdure.sandbox.launch_plan import LaunchPlan, landlock_version
from perdure.sandbox.owners import build_owner_map, prepare_owner
from perdure.sandbox.sandbox import DEFAULT_LIMITS, Access, Launch, ResourceLimits, SandboxUnusable
from perdure.sandbox.system import DEVICES, build_search_path, existing_roots, find_extra_paths

_COMMON_GAPS = (
    "a flaw in the kernel itself",
    "being seen: commands see the names and arguments of this machine's processes",
    "whatever this machine can reach, its own services too, where the network is allowed",
    "the workspace being filled, though never the whole disk",
)


@dataclass(frozen=True)
class NamespacelessSandbox:
    """A sandbox whose programs see the machine as it is but can open only the allowed paths.

    Programs run as `uid`, or as the worker's own user for None. They have no sockets where the
    network is not allowed, and a temporary folder of their own in place of `/tmp` and home.
    """

    name: str
    uid: int | None
    own_folders: Path
    """The folder in which conversations have workspaces of their own."""
    readable: tuple[Path, ...] = ()
    cgroups: Cgroups = NO_CGROUPS
    has_pid_namespace: bool = False
    limits: ResourceLimits = DEFAULT_LIMITS

    @property
    def gaps(self) -> tuple[str, ...]:
        return (*_COMMON_GAPS, *self.cgroups.gaps, *_specific_gaps(self.uid, landlock_version()))

    def prepare(self, workspace: Path) -> None:
        prepare_owner(workspace, self.own_folders)

    def launch(self, argv: Sequence[str], access: Access, environment: Mapping[str, str]) -> Launch:
        readable = [*find_extra_paths(environment), *self.readable, *access.readable]
        if self.uid is not None:
            _check_reachable(access.workspace, self.uid)
        with ExitStack() as cleanup:
            temporary = self._make_temporary_folder(cleanup)
            cgroups = self.cgroups.create(self.limits, cleanup)
            if access.terminal is not None and self.uid is not None:
                os.fchown(access.terminal, self.uid, -1)
            plan = LaunchPlan(
                folder=access.workspace,
                readable=[*existing_roots(), *readable, Path("/proc")],
                writable=[access.workspace, temporary],
                devices=[Path("/dev", name) for name in DEVICES],
                limits=self.limits,
                sockets=access.network,
                tcp=access.network,
                uid=self.uid,
                user_namespace=self.uid is not None,
                own_process_count=self.uid is not None,
                cgroups=cgroups,
            )
            path = build_search_path(environment, readable)
            homes = {"HOME": str(temporary), "TMPDIR": str(temporary), "PATH": path}
            return Launch(
                [*build_owner_map(access.workspace), *plan.argv(argv)],
                {**environment, **homes},
                [*access.pass_fds, *cgroups],
                cleanup.pop_all(),
            )

    def _make_temporary_folder(self, cleanup: ExitStack) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="perdure-"))
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        if self.uid is not None:
            os.chown(folder, self.uid, self.uid)
        return folder


def _specific_gaps(uid: int | None, landlock: int) -> Iterator[str]:
    if not landlock:
        yield "reading what every user of this machine may read: this kernel has no Landlock"
    if uid is None:
        yield "changing the permissions, owners and times of its user's other files"
        yield "what its user's other programs keep in System V memory"
        yield "slowing down its user's other processes"
        if landlock < 6:
            yield "signals to its user's other processes"
        if landlock < 3:
            yield "emptying its user's other files"


def _check_reachable(workspace: Path, uid: int) -> None:
    """Raise SandboxUnusable where `uid` may not traverse a folder above the workspace."""
    for folder in workspace.resolve().parents:
        status = folder.stat()
        permission = stat.S_IXUSR if status.st_uid == uid else stat.S_IXOTH
        if not status.st_mode & permission:
            raise SandboxUnusable(
                f"The workspace {workspace} cannot be reached by the tools' user {uid}, because "
                f"{folder} is closed to it: open that folder with `chmod o+x`, or keep workspaces "
                "elsewhere (PERDURE_DATA)."
            )
